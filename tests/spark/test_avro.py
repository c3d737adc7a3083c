"""Avro values, by a schema file and by a registry."""

import io
import json

import pytest
from fastavro import parse_schema, schemaless_writer

from tests.registry import Registry
from tidegate.core.errors import ConnectionSpecError, SourceAwayError, SourceError

pytestmark = pytest.mark.kafka

ORDER = {
    "type": "record",
    "name": "order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None},
    ],
}
WIDER = {
    **ORDER,
    "fields": [*ORDER["fields"], {"name": "amount", "type": "double", "default": 1.5}],
}


def encode(schema, record, schema_id=None):
    buffer = io.BytesIO()
    schemaless_writer(buffer, parse_schema(schema), record)
    frame = b"" if schema_id is None else b"\0" + schema_id.to_bytes(4, "big")
    return frame + buffer.getvalue()


@pytest.fixture
def topic(kafka_default):
    return kafka_default.create()


@pytest.fixture
def registry(monkeypatch):
    registry = Registry()
    options = {"url": registry.url, "basic.auth.user.info": "user:canary"}
    monkeypatch.setenv("TIDEGATE_CONN_SCHEMAS", json.dumps(options))
    yield registry
    registry.stop()


def avro_source(topic, **value):
    return {
        "type": "kafka",
        "topics": [topic],
        "max_offsets_per_trigger": 100,
        "value": {"format": "avro", **value},
    }


def test_values_are_read_by_a_schema_in_a_file(runs, pipeline_of, kafka, topic, rows_of, settings):
    (settings.pipelines / "schemas").mkdir(parents=True)
    (settings.pipelines / "schemas/order.avsc").write_text(json.dumps(ORDER))
    good = encode(ORDER, {"id": 2, "name": "b"})
    huge = b"\x04\x02\xfe\xff\xff\xff\x0f"  # a name of 2 GiB
    kafka.produce(topic, [encode(ORDER, {"id": 1}), good, good[:2], b"", None, huge, good + b"!"])
    run = runs.run(pipeline_of(avro_source(topic, schema_file="schemas/order.avsc")))
    assert rows_of("out", "id", "name") == [(None, None), (1, None), (2, "b")]
    kept = rows_of("quarantine/p", "offset", "reason")
    assert kept == [
        (2, "the value does not fit the schema"),
        (3, "the value does not fit the schema"),
        (5, "the value does not fit the schema"),
        (6, "the value goes on for 1 bytes after its record"),
    ]
    assert run.summary.quarantined == 4


def test_values_of_all_versions_are_read_by_the_newest(
    runs, pipeline_of, kafka, topic, rows_of, registry
):
    first = registry.register(f"{topic}-value", ORDER)
    second = registry.register(f"{topic}-value", WIDER)
    kafka.produce(
        topic,
        [
            encode(ORDER, {"id": 1, "name": "a"}, first),
            encode(WIDER, {"id": 2, "amount": 9.0}, second),
            encode(WIDER, {"id": 3, "amount": 9.0}, 7),
            b"{}",
            encode(ORDER, {"id": 4}),
        ],
    )
    runs.run(pipeline_of(avro_source(topic, registry="schemas")))
    assert rows_of("out", "id", "name", "amount") == [(1, "a", 1.5), (2, None, 9.0)]
    reasons = [reason for _, reason in rows_of("quarantine/p", "offset", "reason")]
    assert reasons[0] == f"schema 7 is not one of {topic}-value: {first}, {second}"
    assert reasons[1:] == ["the value names no schema"] * 2
    assert all(told.startswith("Basic ") for told in registry.authorizations)


def test_a_version_that_is_added_is_read_by_the_next_run(
    runs, pipeline_of, kafka, topic, rows_of, registry
):
    subject = "orders"
    pipeline = pipeline_of(avro_source(topic, registry="schemas", subject=subject))
    kafka.produce(topic, [encode(ORDER, {"id": 1}, registry.register(subject, ORDER))])
    runs.run(pipeline)
    renamed = {**ORDER, "fields": [*ORDER["fields"][:1]]}
    kafka.produce(topic, [encode(renamed, {"id": 2}, registry.register(subject, renamed))])
    runs.run(pipeline)
    assert rows_of("out", "id") == [(1,), (2,)]


def test_a_subject_that_is_not_there_is_told(runs, pipeline_of, kafka, topic, registry):
    kafka.produce(topic, [b"x"])
    with pytest.raises(SourceError, match=rf"Subject '{topic}-value' not found.*Register a schema"):
        runs.run(pipeline_of(avro_source(topic, registry="schemas")))


def test_a_registry_that_does_not_answer_is_told(runs, pipeline_of, kafka, topic, monkeypatch):
    monkeypatch.setenv("TIDEGATE_CONN_SCHEMAS", '{"url": "http://127.0.0.1:9"}')
    kafka.produce(topic, [b"x"])
    with pytest.raises(SourceAwayError, match="does not answer"):
        runs.run(pipeline_of(avro_source(topic, registry="schemas")))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read: No such file"),
        ("{", "is not the Avro"),
        ('"long"', "is not the Avro"),
    ],
)
def test_a_schema_file_that_is_none_is_told(
    runs, pipeline_of, kafka, topic, settings, content, told
):
    settings.pipelines.mkdir(parents=True, exist_ok=True)
    if content:
        (settings.pipelines / "x.avsc").write_text(content)
    kafka.produce(topic, [b"x"])
    with pytest.raises(SourceError, match=told):
        runs.run(pipeline_of(avro_source(topic, schema_file="x.avsc")))


def test_a_record_that_is_all_null_is_a_record(runs, pipeline_of, kafka, topic, rows_of, registry):
    fields = [{"name": name, "type": ["null", "long"], "default": None} for name in ("a", "b")]
    nullable = {"type": "record", "name": "r", "fields": fields}
    number = registry.register(f"{topic}-value", nullable)
    values = [encode(nullable, {"a": None, "b": None}, number), encode(nullable, {"a": 1}, number)]
    kafka.produce(topic, [*values, values[1][:6]])
    run = runs.run(pipeline_of(avro_source(topic, registry="schemas")))
    assert rows_of("out", "a", "b") == [(None, None), (1, None)]
    assert run.summary.quarantined == 1


@pytest.mark.parametrize(
    "options",
    [
        {"url": "user:canary@127.0.0.1:8081"},
        {"url": "http://user:canary@127.0.0.1:8081"},
        {"url": "http://127.0.0.1:9", "basic.auth.user.info": "canary"},
        {"url": "http://127.0.0.1:9", "nope": "canary"},
    ],
)
def test_a_registry_s_connection_that_cannot_be_used_is_told_without_its_values(
    runs, pipeline_of, kafka, topic, monkeypatch, options
):
    monkeypatch.setenv("TIDEGATE_CONN_SCHEMAS", json.dumps(options))
    kafka.produce(topic, [b"x"])
    with pytest.raises((ConnectionSpecError, SourceAwayError)) as raised:
        runs.run(pipeline_of(avro_source(topic, registry="schemas")))
    assert "canary" not in str(raised.value)
