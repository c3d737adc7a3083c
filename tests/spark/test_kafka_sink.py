"""Rows in a Kafka topic, each once, also when the driver is killed in the middle of the send."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tidegate.core.condition import Verdict
from tidegate.core.errors import BlockedError, SinkError
from tidegate.spark.runner import run_pipeline

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).resolve().parents[2]


def read_all(kafka, topic):
    """Read every record of a topic, in the order of its partitions."""
    return sorted(kafka.read(topic), key=lambda record: (record.partition(), record.offset()))


def tell_headers(record):
    return {name: value.decode() for name, value in record.headers()}


@pytest.fixture
def topic(kafka_default):
    return kafka_default.create(partitions=3)


@pytest.fixture
def land(settings):
    folder = Path(settings.data) / "landing"
    folder.mkdir(parents=True)

    def write(name, *rows):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    return write


FILES = {
    "type": "files",
    "path": "landing",
    "format": "json",
    "schema": "id long, name string, part int",
    "max_files_per_trigger": 1,
    "provenance": False,
    "malformed": "drop",
}


@pytest.fixture
def sending(pipeline_of, topic):
    """A pipeline that sends the rows of files to the topic."""

    def build(**sink):
        pipeline = pipeline_of(FILES).model_dump(mode="json", by_alias=True, exclude_unset=True)
        pipeline["sinks"] = [{"type": "kafka", "topic": topic} | sink]
        return type(pipeline_of(FILES)).model_validate(pipeline)

    return build


def test_rows_are_sent_with_key_partition_and_the_headers_of_their_batch(
    runs, sending, land, kafka, topic
):
    land("a.json", {"id": 1, "name": "x", "part": 2}, {"id": 2, "name": "y", "part": 0})
    run = runs.run(sending(key="name", partition="part"))
    first, second = read_all(kafka, topic)
    assert [(r.partition(), r.key(), json.loads(r.value())) for r in (first, second)] == [
        (0, b"y", {"id": 2, "name": "y"}),
        (2, b"x", {"id": 1, "name": "x"}),
    ]
    batches = {tell_headers(record)["tidegate-batch"] for record in (first, second)}
    assert batches == {f"{runs.find_query_id(sending())}:main:0"}
    assert len({tell_headers(record)["tidegate-row"] for record in (first, second)}) == 2
    assert run.summary.output_rows == 2


def test_one_column_may_be_the_value_and_another_the_headers(
    runs, sending, land, kafka, topic, settings
):
    land("a.json", {"id": 1, "name": "x"})
    spec = sending(value="name", headers="more")
    step = {
        "sql": "SELECT name, array(named_struct('key', 'a', 'value', binary('b'))) more FROM input"
    }
    spec = type(spec).model_validate(
        spec.model_dump(mode="json", by_alias=True, exclude_unset=True) | {"transform": step}
    )
    runs.run(spec)
    (record,) = read_all(kafka, topic)
    assert record.value() == b"x"
    assert tell_headers(record)["a"] == "b"


FORWARDED = """SELECT *, array(
    named_struct('key', 'a', 'value', binary('b')),
    named_struct('key', 'tidegate-batch', 'value', binary('another')),
    named_struct('key', 'tidegate-row', 'value', binary('another'))
) more FROM input"""


def test_a_number_may_be_the_key_and_a_megabyte_the_value(
    runs, sending, land, kafka, kafka_default
):
    topic = kafka.create(max_message_bytes="4000000")
    land("a.json", {"id": 7, "name": "x" * 1_000_000})
    options = {"kafka.max.request.size": 4_000_000}
    runs.run(sending(topic=topic, key="id", value="name", options=options))
    (record,) = read_all(kafka, topic)
    assert (record.key(), len(record.value())) == (b"7", 1_000_000)


def test_rows_of_the_same_content_are_all_sent(runs, sending, land, kafka, topic):
    land("a.json", *[{"id": 1, "name": "same"}] * 5)
    runs.run(sending())
    records = read_all(kafka, topic)
    assert len(records) == 5
    assert len({tell_headers(record)["tidegate-row"] for record in records}) == 5


@pytest.fixture(params=[None])
def half_sent(request, runs, sending, land, settings, monkeypatch):
    """A batch of which a part was sent before the machine went away; and how to go on."""
    from tidegate.spark.sinks.kafka import KafkaSend

    land("a.json", *[{"id": n % 7, "name": "x"} for n in range(20)])
    pipeline = sending()
    if request.param:
        parts = sending(headers="more").model_dump(mode="json", by_alias=True, exclude_unset=True)
        pipeline = type(pipeline).model_validate(parts | {"transform": {"sql": request.param}})
    plan = runs.plan(pipeline)
    send = KafkaSend._send

    def send_a_part_then_die(self, records):
        send(self, records.limit(8))
        raise SinkError("The machine went away.")

    with monkeypatch.context() as patch:
        patch.setattr(KafkaSend, "_send", send_a_part_then_die)
        with pytest.raises(SinkError):
            run_pipeline(pipeline, settings, plan.run_id)

    def go_on():
        run_pipeline(pipeline, settings, plan.run_id)
        assert runs.judge(pipeline, plan).verdict is Verdict.REACHED
        return runs.ledger(pipeline).read_run(plan.run_id)

    return go_on


def count_ids(kafka, topic):
    return Counter(json.loads(record.value())["id"] for record in kafka.read(topic))


def test_a_replay_sends_only_what_the_topic_lacks(half_sent, kafka, topic, settings):
    assert sum(kafka.read_ends(topic).values()) == 8
    assert half_sent().summary.output_rows == 20
    assert count_ids(kafka, topic) == Counter(n % 7 for n in range(20))
    markers = list((Path(settings.state) / "p/sinks/main").iterdir())
    assert len(markers) == 1


@pytest.mark.parametrize("half_sent", [FORWARDED], indirect=True)
def test_a_replay_knows_its_rows_although_they_carry_another_pipeline_s_headers(
    half_sent, kafka, topic
):
    half_sent()
    assert count_ids(kafka, topic) == Counter(n % 7 for n in range(20))
    names = [name for name, _ in kafka.read(topic)[0].headers()]
    assert names == ["a", "tidegate-batch", "tidegate-row"]


def test_a_driver_killed_in_the_middle_of_the_send_doubles_and_loses_nothing(
    kafka_default, topic, settings, land
):
    count = 8_000
    settings.pipelines.mkdir(parents=True)
    land("a.json", *[{"id": n, "name": "x"} for n in range(count)])
    # One record a request, so that there is a middle to be killed in.
    sink = {"type": "kafka", "topic": topic, "options": {"kafka.batch.size": 0}}
    spec = {"name": "p", "source": FILES, "sinks": [sink]}
    (settings.pipelines / "p.yaml").write_text(json.dumps(spec))
    environment = os.environ | settings.to_environment()
    environment |= {"TIDEGATE_HOME": str(ROOT), "TIDEGATE_JARS": str(ROOT / "jars")}
    environment["TIDEGATE_MASTER"] = "local[2]"
    command = [str(Path(sys.executable).with_name("tidegate")), "run", "p"]
    driver = subprocess.Popen(command, env=environment, start_new_session=True)
    while sum(kafka_default.read_ends(topic).values()) == 0:
        assert driver.poll() is None, "it ended before anything was sent"
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    assert 0 < sum(kafka_default.read_ends(topic).values()) < count
    subprocess.run(command, env=environment, check=True)
    sent = Counter(json.loads(record.value())["id"] for record in read_all(kafka_default, topic))
    assert sent == Counter(range(count))


def test_a_topic_or_a_column_that_is_not_there_is_told_before_anything_is_sent(
    runs, sending, land, kafka, topic
):
    land("a.json", {"id": 1, "name": "x"})
    with pytest.raises(
        SinkError, match=r"takes nope, which its rows do not have\. Choose out of id"
    ):
        runs.run(sending(key="nope"))
    with pytest.raises(BlockedError, match="The topic nowhere does not exist"):
        runs.run(sending(topic="nowhere"))


def test_a_batch_is_sent_to_its_end_though_the_topic_has_expired(half_sent, kafka, topic):
    for number, end in kafka.read_ends(topic).items():
        kafka.expire(topic, before=end, partition=number)
    half_sent()
    assert count_ids(kafka, topic) == Counter(n % 7 for n in range(20))


def test_a_topic_created_anew_in_the_middle_of_a_batch_is_told(half_sent, kafka, topic):
    kafka.delete(topic)
    kafka.create(topic, partitions=3)
    with pytest.raises(
        SinkError, match=r"was deleted and created anew.*sinks/main; then run again"
    ):
        half_sent()
