"""`tidegate lag`, against the broker's own tool."""

import json
import subprocess

import pytest

pytestmark = pytest.mark.kafka


def spell_source(topic):
    return f"{{type: kafka, topics: [{topic}], max_offsets_per_trigger: 10, value: {{format: string}}}}"


def test_the_command_agrees_with_the_broker_s_own_tool(
    kafka_default, checkpoint_of, add_spec, call
):
    topic = kafka_default.create(partitions=3)
    for partition, count in enumerate((5, 0, 7)):
        kafka_default.produce(topic, [b"x"] * count, partition=partition)
    checkpoint_of("orders").batch(0, {topic: {"0": 2, "1": 0, "2": 7}})
    add_spec("orders", source=spell_source(topic))
    add_spec("others")
    asked = call("lag", "--json")
    assert asked.returncode == 0, asked.stderr
    ours = {row["partition"]: row for row in json.loads(asked.stdout)}
    ends = _ask_kafka(kafka_default, topic)
    assert {number: row["end"] for number, row in ours.items()} == ends
    assert {number: row["lag_records"] for number, row in ours.items()} == {0: 3, 1: 0, 2: 0}
    shown = call("lag", "orders")
    assert topic in shown.stdout
    assert "kept for" in shown.stdout


def _ask_kafka(kafka, topic):
    """Ask Kafka's own GetOffsetShell where each partition ends."""
    answer = subprocess.run(
        kafka.broker._java(
            "org.apache.kafka.tools.GetOffsetShell",
            *("--bootstrap-server", kafka.broker.address, "--topic", topic),
        ),
        capture_output=True,
        text=True,
        check=True,
    )
    lines = (line.split(":") for line in answer.stdout.split())
    return {int(number): int(offset) for _, number, offset in lines}


def test_a_pipeline_that_cannot_be_asked_is_told_and_hides_no_other(kafka_default, add_spec, call):
    topic = kafka_default.create()
    kafka_default.produce(topic, [b"x"])
    add_spec("gone", source=spell_source("no-such-topic"))
    add_spec("here", source=spell_source(topic))
    asked = call("lag", "--json")
    assert asked.returncode == 1
    assert [row["pipeline"] for row in json.loads(asked.stdout)] == ["here"]
    assert "gone: The topic no-such-topic does not exist." in asked.stderr


def test_a_topic_that_is_another_and_a_missing_certificate_are_told_and_hide_no_other(
    kafka_default, checkpoint_of, add_spec, call, monkeypatch
):
    options = kafka_default.options | {"security.protocol": "SSL", "ssl.ca.location": "/no/file"}
    monkeypatch.setenv("TIDEGATE_CONN_SECURE", json.dumps(options))
    another, topic = kafka_default.create(), kafka_default.create()
    checkpoint_of("another").batch(0, {another: {"0": 5}})
    add_spec("another", source=spell_source(another))
    add_spec("secure", source=spell_source(topic).replace("{type", "{connection: secure, type"))
    add_spec("whole", source=spell_source(topic))
    asked = call("lag", "--json")
    assert asked.returncode == 1
    assert [row["pipeline"] for row in json.loads(asked.stdout)] == ["whole"]
    assert "another: The topics are not the ones that the checkpoint was reading" in asked.stderr
    assert "secure: The connection 'secure' names a file as ssl.ca.location" in asked.stderr
    assert "Traceback" not in asked.stderr
