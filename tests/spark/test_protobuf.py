"""Protobuf values, by a schema file and by a registry."""

import json
from base64 import b64encode
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import message_factory

from tests.registry import Registry
from tidegate.core.errors import SourceError
from tidegate.core.spec.kafka import Decoding
from tidegate.core.values.schemas import read_schema_file
from tidegate.spark.values.message import find_message

pytestmark = pytest.mark.kafka

EVERYTHING = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
enum Colour { NONE = 0; RED = 1; }
message Line { string product = 1; int32 quantity = 2; }
message Order {
  int64 id = 1;
  optional string name = 2;
  uint64 big = 3;
  uint32 unsigned = 4;
  double amount = 5;
  float rate = 6;
  bool paid = 7;
  bytes raw = 8;
  Colour colour = 9;
  Line first = 10;
  repeated Line lines = 11;
  map<string, Line> by_name = 12;
  google.protobuf.Timestamp at = 13;
  google.protobuf.Int64Value maybe = 14;
  google.protobuf.Struct more = 15;
  oneof payment { string card = 16; string cash = 17; }
}
"""
ORDER = 'syntax = "proto3"; message Order { int64 id = 1; } message Other { int64 id = 1; }'
WIDER = ORDER.replace("int64 id = 1; }", "int64 id = 1; string note = 2; }", 1)


@pytest.fixture
def message_of(settings):
    """Make the class of a message, out of its schema's text."""
    settings.pipelines.mkdir(parents=True)

    def make(text, name, file="x.proto"):
        (settings.pipelines / file).write_text(text)
        spec = {"format": "protobuf", "schema_file": file, "message": name}
        compiled = read_schema_file(Decoding.model_validate(spec), settings.pipelines)
        return message_factory.GetMessageClass(find_message(compiled.descriptors, compiled.message))

    return make


@pytest.fixture
def topic(kafka_default):
    return kafka_default.create()


@pytest.fixture
def registry(monkeypatch):
    registry = Registry()
    monkeypatch.setenv("TIDEGATE_CONN_SCHEMAS", json.dumps({"url": registry.url}))
    yield registry
    registry.stop()


def source(topic, **value):
    return {
        "type": "kafka",
        "topics": [topic],
        "max_offsets_per_trigger": 100,
        "value": {"format": "protobuf", **value},
    }


def register(registry, subject, message_class, text):
    """Register a schema as text and, for Confluent's serializer, compiled."""
    compiled = b64encode(message_class.DESCRIPTOR.file.serialized_pb).decode()
    return registry.register(subject, text, schemaType="PROTOBUF", serialised=compiled)


def serialise(registry, topic, message):
    """Frame a message as Confluent's own serializer does."""
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    serializer = ProtobufSerializer(
        type(message), SchemaRegistryClient({"url": registry.url}), conf
    )
    return serializer(message, SerializationContext(topic, MessageField.VALUE))


def test_every_type_arrives_as_itself(runs, pipeline_of, kafka, topic, spark, settings, message_of):
    order_class = message_of(EVERYTHING, "Order")
    full = order_class(
        id=-5,
        name="",
        big=2**64 - 1,
        unsigned=2**32 - 1,
        amount=1.5,
        rate=0.5,
        paid=True,
        raw=b"\xff\x00",
        colour=1,
        first={"product": "lamp", "quantity": 2},
        lines=[{"product": "a"}, {"product": "b", "quantity": 1}],
        by_name={"k": {"product": "c"}},
        maybe={"value": 0},
        cash="coins",
    )
    full.at.FromDatetime(datetime(2026, 1, 31, 8, 0, 0, 123456, tzinfo=UTC))
    full.more.update({"a": [1, None]})
    endless = order_class(id=1, at={"seconds": 2**62})
    kafka.produce(
        topic, [full.SerializeToString(), b"", b"\xff\xff", None, endless.SerializeToString()]
    )
    run = runs.run(pipeline_of(source(topic, schema_file="x.proto", message="shop.Order")))
    rows = spark.read.format("delta").load(settings.locate_url("out")).orderBy("_offset").collect()
    found = {key: value for key, value in rows[0].asDict(recursive=True).items() if key[0] != "_"}
    assert found == {
        "id": -5,
        "name": "",
        "big": Decimal(2**64 - 1),
        "unsigned": 2**32 - 1,
        "amount": 1.5,
        "rate": 0.5,
        "paid": True,
        "raw": bytearray(b"\xff\x00"),
        "colour": "RED",
        "first": {"product": "lamp", "quantity": 2},
        "lines": [{"product": "a", "quantity": 0}, {"product": "b", "quantity": 1}],
        "by_name": {"k": {"product": "c", "quantity": 0}},
        "at": datetime(2026, 1, 31, 8, 0, 0, 123456, tzinfo=UTC).astimezone().replace(tzinfo=None),
        "maybe": 0,
        "more": '{"a": [1.0, null]}',
        "card": None,
        "cash": "coins",
    }
    empty = rows[1]
    assert (empty.id, empty.colour, empty.lines, empty.name, empty.maybe) == (
        *(0, "NONE", []),
        *(None, None),
    )
    assert rows[2].id is None  # a tombstone
    assert (run.summary.input_rows, run.summary.quarantined) == (5, 2)


def test_values_of_all_versions_are_read_by_the_newest(
    runs, pipeline_of, kafka, topic, rows_of, registry, message_of
):
    subject = f"{topic}-value"
    narrow, wider = message_of(ORDER, "Order", "a.proto"), message_of(WIDER, "Order", "b.proto")
    first = register(registry, subject, narrow, ORDER)
    older = serialise(registry, topic, narrow(id=1))
    second = register(registry, subject, wider, WIDER)
    newer = serialise(registry, topic, wider(id=2, note="x"))
    other = serialise(registry, topic, message_of(WIDER, "Other", "c.proto")(id=3))
    assert (older[:5], newer[:5]) == (
        b"\0" + first.to_bytes(4, "big"),
        b"\0" + second.to_bytes(4, "big"),
    )
    unknown = b"\0\0\0\0\x07\0" + wider(id=4).SerializeToString()
    kafka.produce(topic, [older, newer, other, unknown, b"{}", newer[:7]])
    runs.run(pipeline_of(source(topic, registry="schemas", message="Order")))
    assert rows_of("out", "id", "note") == [(1, ""), (2, "x")]
    assert [reason for _, reason in rows_of("quarantine/p", "offset", "reason")] == [
        "the value is Other, not Order",
        f"schema 7 is not one of {subject}: {first}, {second}",
        "the value names no schema",
        "the value does not fit the schema",
    ]


def test_a_schema_of_the_registry_may_refer_to_others(
    runs, pipeline_of, kafka, topic, rows_of, registry, message_of
):
    money = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'
    priced = (
        'syntax = "proto3"; package shop; import "money.proto"; message Priced { Money price = 1; }'
    )
    registry.register("money", money, schemaType="PROTOBUF")
    reference = {"name": "money.proto", "subject": "money", "version": 1}
    number = registry.register("p", priced, schemaType="PROTOBUF", references=[reference])
    message_of(money, "Money", "money.proto")
    value = message_of(priced, "Priced")(price={"cents": 5}).SerializeToString()
    kafka.produce(topic, [b"\0" + number.to_bytes(4, "big") + b"\0" + value])
    runs.run(pipeline_of(source(topic, registry="schemas", subject="p")))
    assert rows_of("out", "price.cents") == [(5,)]


def test_a_subject_of_another_format_is_told(runs, pipeline_of, kafka, topic, registry):
    registry.register(f"{topic}-value", {"type": "string"})
    kafka.produce(topic, [b"x"])
    with pytest.raises(SourceError, match="is avro, and the spec says protobuf"):
        runs.run(pipeline_of(source(topic, registry="schemas")))


def test_a_message_that_holds_itself_is_refused(runs, pipeline_of, kafka, topic, message_of):
    message_of('syntax = "proto3"; message Tree { repeated Tree children = 1; }', "Tree")
    kafka.produce(topic, [b""])
    with pytest.raises(SourceError, match="Tree holds itself"):
        runs.run(pipeline_of(source(topic, schema_file="x.proto")))


def test_a_field_that_has_the_name_of_an_added_column_is_told(
    runs, pipeline_of, kafka, topic, message_of
):
    message_of('syntax = "proto3"; message Row { string key = 1; }', "Row")
    kafka.produce(topic, [b""])
    with pytest.raises(SourceError, match="The values have key, and so has"):
        runs.run(pipeline_of(source(topic, schema_file="x.proto") | {"key": "string"}))
