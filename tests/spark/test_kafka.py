"""Kafka's records in a table, from a real broker."""

import json
from datetime import UTC, datetime

import pytest

from tidegate.core.condition import Verdict
from tidegate.core.ledger import Decision

pytestmark = pytest.mark.kafka

SCHEMA = "id long, name string"
JSON = {"format": "json", "schema": SCHEMA}


def kafka_source(*topics, value=JSON, **more):
    source = {"type": "kafka", "max_offsets_per_trigger": 3, "value": value}
    return source | ({"topics": list(topics)} if topics else {}) | more


def orders(*ids):
    return [{"id": number, "name": f"n{number}"} for number in ids]


@pytest.fixture
def topic(kafka_default):
    return kafka_default.create(partitions=2)


def test_records_are_read_in_bounded_batches_and_each_once(
    runs, pipeline_of, kafka, topic, rows_of
):
    pipeline = pipeline_of(kafka_source(topic))
    kafka.produce(topic, orders(*range(5)))
    kafka.produce(topic, orders(10, 11), partition=1)
    run = runs.run(pipeline)
    assert [batch.input_rows for batch in run.batches] == [3, 3, 1]
    assert run.summary.output_rows == 7
    kafka.produce(topic, orders(20))
    assert runs.run(pipeline).summary.output_rows == 1
    assert rows_of("out", "id") == [(n,) for n in (0, 1, 2, 3, 4, 10, 11, 20)]
    assert runs.plan(pipeline).decision is Decision.IDLE


def test_a_row_says_which_record_it_is(runs, pipeline_of, kafka, topic, rows_of):
    at = datetime.now(UTC).replace(microsecond=0)
    kafka.produce(topic, orders(7), partition=1, timestamp_ms=int(at.timestamp() * 1000))
    runs.run(pipeline_of(kafka_source(topic)))
    place = rows_of("out", "_topic", "_partition", "_offset", "_timestamp")
    assert place == [(topic, 1, 0, at.replace(tzinfo=None))]


def test_provenance_may_be_left_out_and_key_and_headers_taken(
    runs, pipeline_of, kafka, topic, rows_of
):
    kafka.produce(topic, [b"v"], key="k", headers={"a": "1"})
    source = kafka_source(
        topic, value={"format": "binary"}, key="string", headers=True, provenance=False
    )
    runs.run(pipeline_of(source))
    ((value, key, headers),) = rows_of("out", "value", "key", "headers")
    assert (bytes(value), key) == (b"v", "k")
    assert [(header.key, bytes(header.value)) for header in headers] == [("a", b"1")]


def test_text_and_csv_are_read(runs, pipeline_of, kafka, kafka_default, rows_of):
    text, csv = kafka.create(), kafka.create()
    kafka.produce(text, [b"one", b"two"])
    kafka.produce(csv, [b"1;x", b"2;y", b"z;3"])
    runs.run(pipeline_of(kafka_source(text, value={"format": "string"}), sink={"table": "text"}))
    decoding = {"format": "csv", "schema": SCHEMA, "options": {"sep": ";"}}
    runs.run(pipeline_of(kafka_source(csv, value=decoding), name="q", sink={"table": "csv"}))
    assert rows_of("text", "value") == [("one",), ("two",)]
    assert rows_of("csv", "id", "name") == [(1, "x"), (2, "y")]
    assert [bytes(v) for (v,) in rows_of("quarantine/q", "value")] == [b"z;3"]


MALFORMED = {
    b"{": "the value does not fit the schema",
    b'{"id": "x"}': "the value does not fit the schema",
    b"[1]": "the value does not fit the schema",
    b"": "the value is empty",
    b'{"id": 1, "name": "\xff"}': "the value is not UTF-8 text",
}


def test_malformed_values_are_put_aside_with_their_place_and_reason(
    runs, pipeline_of, kafka, topic, rows_of
):
    kafka.produce(topic, [*orders(1), *MALFORMED, *orders(2)], key="k")
    run = runs.run(pipeline_of(kafka_source(topic)))
    assert rows_of("out", "id") == [(1,), (2,)]
    kept = rows_of("quarantine/p", "offset", "value", "reason", "rule", "run_id", "topic", "key")
    assert [(offset, bytes(value), reason) for offset, value, reason, *_ in kept] == [
        (number, value, reason) for number, (value, reason) in enumerate(MALFORMED.items(), start=1)
    ]
    assert {(*more[:3], bytes(more[3])) for _, _, _, *more in kept} == {
        ("malformed", "run 1", topic, b"k")
    }
    assert (run.summary.output_rows, run.summary.quarantined) == (2, 5)


def test_a_malformed_value_stops_the_run_where_the_spec_says_so(runs, pipeline_of, kafka, topic):
    kafka.produce(topic, [*orders(1), b"{"])
    pipeline = pipeline_of(kafka_source(topic, value=JSON | {"on_malformed": "fail"}))
    with pytest.raises(Exception, match="does not fit the schema"):
        runs.run(pipeline)
    error = runs.ledger(pipeline).find_latest().attempt.error
    assert f"record {topic}-0 at offset 1: the value does not fit the schema" in error


def test_a_replay_doubles_nothing_put_aside(
    runs, pipeline_of, kafka, topic, rows_of, monkeypatch, settings
):
    from tidegate.core.errors import SinkError
    from tidegate.spark.batch import BatchWriter
    from tidegate.spark.runner import run_pipeline

    kafka.produce(topic, [*orders(1), b"{"])
    pipeline = pipeline_of(kafka_source(topic))
    plan = runs.plan(pipeline)
    write = BatchWriter.write

    def write_then_die(self, *arguments):
        write(self, *arguments)
        raise SinkError("The machine went away.")

    with monkeypatch.context() as patch:
        patch.setattr(BatchWriter, "write", write_then_die)
        with pytest.raises(SinkError):
            run_pipeline(pipeline, settings, plan.run_id)
    run_pipeline(pipeline, settings, plan.run_id)
    assert runs.judge(pipeline, plan).verdict is Verdict.REACHED
    assert rows_of("out", "id") == [(1,)]
    assert len(rows_of("quarantine/p")) == 1


UNKNOWN = {"id": 1, "name": "a", "Name": "b", "more": {"x": [1]}, "n": 5}


def test_unknown_fields_are_rescued(runs, pipeline_of, kafka, topic, rows_of):
    kafka.produce(topic, [UNKNOWN, *orders(2)])
    runs.run(pipeline_of(kafka_source(topic)))
    (first, rescued), (second, none) = rows_of("out", "id", "_rescued")
    assert (first, second, none) == (1, 2, None)
    assert json.loads(rescued) == {"Name": "b", "more": {"x": [1]}, "n": 5}


def test_unknown_fields_may_be_dropped(runs, pipeline_of, kafka, topic, rows_of):
    kafka.produce(topic, [UNKNOWN])
    source = kafka_source(topic, value=JSON | {"on_unknown": "drop"}, provenance=False)
    runs.run(pipeline_of(source))
    assert rows_of("out") == [(1, "a")]


def test_unknown_fields_may_become_columns(runs, pipeline_of, kafka, topic, rows_of):
    source = kafka_source(topic, value=JSON | {"on_unknown": "evolve"}, provenance=False)
    pipeline = pipeline_of(source)
    kafka.produce(topic, orders(1))
    runs.run(pipeline)
    kafka.produce(topic, [{"id": 2, "n": 5}])
    runs.run(pipeline)
    kafka.produce(topic, [{"id": 3, "n": "text", "more": {"x": 1}}])
    runs.run(pipeline)
    rows = rows_of("out", "id", "n", "more.x", "_rescued")
    assert [row[:3] for row in rows] == [(1, None, None), (2, 5, None), (3, None, 1)]
    assert json.loads(rows[2][3]) == {"n": "text", "more": {"x": 1}}


def test_unknown_fields_may_stop_the_run(runs, pipeline_of, kafka, topic):
    kafka.produce(topic, [UNKNOWN])
    pipeline = pipeline_of(kafka_source(topic, value=JSON | {"on_unknown": "fail"}))
    with pytest.raises(Exception, match="unknown fields"):
        runs.run(pipeline)
    assert "offset 0: unknown fields" in runs.ledger(pipeline).find_latest().attempt.error


def test_steps_see_only_what_parsed(runs, pipeline_of, kafka, topic, rows_of):
    kafka.produce(topic, [*orders(1, 2), b"{"])
    runs.run(pipeline_of(kafka_source(topic), transform={"sql": "SELECT id * 10 AS id FROM input"}))
    assert rows_of("out") == [(10,), (20,)]
    assert len(rows_of("quarantine/p")) == 1


def test_a_stateful_step_works_beside_the_quarantine(
    runs, pipeline_of, kafka, topic, rows_of, settings
):
    settings.pipelines.mkdir(parents=True)
    (settings.pipelines / "kafka_dedupe.py").write_text(
        "def once(df, context):\n    return df.dropDuplicates(['id'])\n"
    )
    pipeline = pipeline_of(kafka_source(topic), transform={"python": "kafka_dedupe:once"})
    kafka.produce(topic, [*orders(1, 1, 2), b"{"])
    runs.run(pipeline)
    kafka.produce(topic, [*orders(2, 3), b"["])
    run = runs.run(pipeline)
    assert rows_of("out", "id") == [(1,), (2,), (3,)]
    assert len(rows_of("quarantine/p")) == 2
    assert run.summary.quarantined == 1


def test_a_tombstone_is_a_row_that_its_key_gives_a_meaning(
    runs, pipeline_of, kafka, topic, rows_of
):
    kafka.produce(topic, [*orders(1), None], key="k")
    runs.run(pipeline_of(kafka_source(topic, key="string")))
    assert rows_of("out", "id", "key") == [(None, "k"), (1, "k")]


def test_a_first_run_may_begin_at_offsets_at_a_time_or_at_the_end(
    runs, pipeline_of, kafka, kafka_default, rows_of
):
    topic = kafka.create(partitions=2, retention_ms="-1")
    for day in (1, 2, 3):
        at = datetime(2026, 1, day, tzinfo=UTC)
        kafka.produce(topic, orders(day), timestamp_ms=int(at.timestamp() * 1000))
    starts = {
        "offsets": {"starting_offsets": {topic: {0: 2}}},
        "time": {"starting_timestamp": "2026-01-02"},
        "end": {"starting": "latest"},
    }
    for name, start in starts.items():
        runs.run(pipeline_of(kafka_source(topic, **start), name=f"p_{name}", sink={"table": name}))
    kafka.produce(topic, orders(4))
    for name, start in starts.items():
        runs.run(pipeline_of(kafka_source(topic, **start), name=f"p_{name}", sink={"table": name}))
    assert rows_of("offsets", "id") == [(3,), (4,)]
    assert rows_of("time", "id") == [(2,), (3,), (4,)]
    assert rows_of("end", "id") == [(4,)]


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_what_transactions_left_is_read_by_isolation(
    runs, pipeline_of, kafka, topic, rows_of, isolation
):
    kafka.transact(topic, orders(1), ends="commit")
    kafka.transact(topic, orders(2), ends="abort")
    producer = kafka.transact(topic, orders(3), ends="never")
    pipeline = pipeline_of(kafka_source(topic, isolation=isolation))
    runs.run(pipeline)
    read = [(1,)] if isolation == "read_committed" else [(1,), (2,), (3,)]
    assert rows_of("out", "id") == read
    producer.commit_transaction()
    runs.run(pipeline)
    assert rows_of("out", "id") == ([(1,), (3,)] if isolation == "read_committed" else read)
    assert runs.plan(pipeline).decision is Decision.IDLE


def test_new_partitions_and_new_topics_of_a_pattern_are_read_from_their_start(
    runs, pipeline_of, kafka, topic, rows_of
):
    pipeline = pipeline_of(kafka_source(topic_pattern=f"^{topic}"))
    kafka.produce(topic, orders(1))
    runs.run(pipeline)
    kafka.add_partitions(topic, 4)
    kafka.produce(topic, orders(2), partition=3)
    kafka.produce(kafka.create(f"{topic}-more"), orders(3))
    runs.run(pipeline)
    assert rows_of("out", "id") == [(1,), (2,), (3,)]


def test_a_message_of_a_megabyte_and_64_partitions_are_read(
    runs, pipeline_of, kafka, kafka_default, rows_of
):
    topic = kafka.create(partitions=64, max_message_bytes="4000000")
    large = {"id": 1, "name": "x" * 1_000_000}
    for partition in range(64):
        kafka.produce(
            topic, [large if partition == 5 else orders(partition)[0]], partition=partition
        )
    runs.run(pipeline_of(kafka_source(topic, max_offsets_per_trigger=1000)))
    rows = rows_of("out", "id", "name")
    assert len(rows) == 64
    assert max(len(name) for _, name in rows) == 1_000_000


def test_expired_records_that_were_given_up_are_passed_over(
    runs, pipeline_of, kafka, topic, rows_of, settings
):
    from tidegate.core.plan import plan_run
    from tidegate.spark.runner import run_pipeline

    pipeline = pipeline_of(kafka_source(topic, max_offsets_per_trigger=100))
    kafka.produce(topic, orders(1))
    runs.run(pipeline)
    kafka.produce(topic, orders(2, 3, 4))
    kafka.expire(topic, before=3)
    assert runs.plan(pipeline).decision is Decision.BLOCKED
    plan = plan_run(pipeline, settings, "accepted", accepts_loss=True)
    run_pipeline(pipeline, settings, plan.run_id)
    assert runs.judge(pipeline, plan).verdict is Verdict.REACHED
    assert rows_of("out", "id") == [(1,), (4,)]
    assert runs.plan(pipeline).decision is Decision.IDLE


def test_some_partitions_are_read_in_more_tasks_past_what_expired(
    runs, pipeline_of, kafka, topic, rows_of
):
    source = kafka_source(
        partitions={topic: [1]},
        max_offsets_per_trigger=100,
        min_partitions=3,
        group_prefix="etl",
        fail_on_data_loss=False,
    )
    pipeline = pipeline_of(source)
    kafka.produce(topic, orders(0))
    kafka.produce(topic, orders(1), partition=1)
    runs.run(pipeline)
    kafka.produce(topic, orders(*range(2, 9)), partition=1)
    kafka.expire(topic, before=3, partition=1)
    plan = runs.plan(pipeline)
    assert "2 records expired" in plan.warning
    runs.run(pipeline)
    assert rows_of("out", "id", "_partition") == [(n, 1) for n in (1, 4, 5, 6, 7, 8)]
    assert runs.plan(pipeline).decision is Decision.IDLE


JSON_ODDITIES = [
    ('{"id":1}{"id":2}', "the value is not one JSON document"),
    ('{"id":1}\n{"id":2}', "the value is not one JSON document"),
    ('{"id":1} garbage', "the value is not one JSON document"),
    ('{"id":1},{"id":2}', "the value is not one JSON document"),
    ('[{"id":1}]', "the value does not fit the schema"),
    ('{"id":1,"x":{"a":1,"a":2},"y":5}', "its unknown fields cannot be told apart"),
    ('{"id":1,"x":"\\ud800"}', "its unknown fields cannot be told apart"),
]


def test_what_a_value_has_beyond_what_can_be_read_is_put_aside(
    runs, pipeline_of, kafka, kafka_default, rows_of
):
    topic = kafka.create()
    kafka.produce(topic, [value.encode() for value, _ in JSON_ODDITIES] + [b' {"id": 9} '])
    run = runs.run(pipeline_of(kafka_source(topic)))
    assert rows_of("out", "id") == [(9,)]
    told = rows_of("quarantine/p", "offset", "reason")
    assert told == [(number, reason) for number, (_, reason) in enumerate(JSON_ODDITIES)]
    assert (run.summary.input_rows, run.summary.quarantined) == (8, 7)


def test_fields_that_cannot_be_columns_stay_rescued_when_the_table_evolves(
    runs, pipeline_of, kafka, kafka_default, rows_of
):
    topic = kafka.create()
    value = {"format": "json", "schema": "id long, name string", "on_unknown": "evolve"}
    pipeline = pipeline_of(kafka_source(topic, value=value))
    odd = [{"a b": 1}, {"x": {"a,b": 1}}, {"Foo": 1, "foo": 2}, {"y": {"A": 1, "a": 2}}, {"ok": 7}]
    kafka.produce(topic, [{"id": number} | fields for number, fields in enumerate(odd)])
    runs.run(pipeline)
    kafka.produce(topic, [{"id": 9, "OK": 8}])
    runs.run(pipeline)
    assert rows_of("out", "id", "ok") == [
        (0, None),
        (1, None),
        (2, None),
        (3, None),
        (4, 7),
        (9, 8),
    ]
    rescued = {number: json.loads(text) for number, text in rows_of("out", "id", "_rescued")}
    assert {number: rescued[number] for number in range(5)} == dict(enumerate(odd))


@pytest.mark.parametrize("value_format", ["string", "binary"])
def test_text_that_is_none_is_put_aside(
    runs, pipeline_of, kafka, kafka_default, rows_of, value_format
):
    topic = kafka.create()
    kafka.produce(topic, [b"good", b"\xff\xfe"])
    kafka.produce(topic, [b"good"], key=b"\xff")
    runs.run(pipeline_of(kafka_source(topic, value={"format": value_format}, key="string")))
    reasons = [reason for _, reason in rows_of("quarantine/p", "offset", "reason")]
    bad_value = ["the value is not UTF-8 text"] if value_format == "string" else []
    assert reasons == [*bad_value, "the key is not UTF-8 text"]
