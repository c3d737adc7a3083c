"""Avro values from their first byte to their last, without a JVM."""

import io
import json
import pickle

import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from tidegate.spark.values.decoded import MISFIT
from tidegate.spark.values.record import RecordChecker

ORDER = {
    "type": "record",
    "name": "order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "paid", "type": "boolean"},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9}},
        {"name": "rates", "type": {"type": "array", "items": "double"}},
        {"name": "tags", "type": {"type": "map", "values": ["null", "float"]}},
        {"name": "kind", "type": {"type": "enum", "name": "kind", "symbols": ["A", "B"]}},
        {"name": "other", "type": ["null", "kind"]},
        {"name": "hash", "type": {"type": "fixed", "name": "md", "size": 4}},
        {"name": "parent", "type": ["null", "shop.order"]},
        {"name": "nothing", "type": "null"},
    ],
}
LONG = st.integers(-(2**63), 2**63 - 1)
PLAIN = st.fixed_dictionaries(
    {
        "id": LONG,
        "name": st.none() | st.text(),
        "paid": st.booleans(),
        "amount": st.binary(),
        "rates": st.lists(st.floats()),
        "tags": st.dictionaries(st.text(), st.none() | st.floats(width=32)),
        "kind": st.sampled_from("AB"),
        "other": st.none() | st.sampled_from("AB"),
        "hash": st.binary(min_size=4, max_size=4),
        "nothing": st.none(),
    }
)
ORDERS = st.builds(
    lambda order, parent: order | {"parent": parent and parent | {"parent": None}},
    PLAIN,
    st.none() | PLAIN,
)
# As bytes, decimals are what fastavro itself would make of them.
WRITTEN = parse_schema(json.loads(json.dumps(ORDER).replace(', "logicalType": "decimal"', "")))
CHECKER = RecordChecker(json.dumps(ORDER), {}, "")


def encode(record, schema=WRITTEN):
    buffer = io.BytesIO()
    schemaless_writer(buffer, schema, record)
    return buffer.getvalue()


def check(value, *fields):
    fields = [{"name": f"f{number}", "type": kind} for number, kind in enumerate(fields)]
    schema = {"type": "record", "name": "r", "fields": fields}
    return RecordChecker(json.dumps(schema), {}, "").find_fault(value)


@given(ORDERS)
def test_what_is_one_record_has_no_fault(order):
    assert CHECKER.find_fault(encode(order)) is None


@given(ORDERS, st.data())
def test_what_is_less_or_more_than_one_record_has(order, data):
    value = encode(order)
    cut = data.draw(st.integers(0, len(value) - 1))
    assert CHECKER.find_fault(value[:cut]) is not None
    told = CHECKER.find_fault(value + b"\0" * (cut + 1))
    assert told == f"the value goes on for {cut + 1:,} bytes after its record"


@given(st.binary(max_size=200))
def test_whatever_the_bytes_are_there_is_an_answer(value):
    assert CHECKER.find_fault(value) is None or CHECKER.find_fault(value)


HUGE = b"\xfe\xff\xff\xff\x0f"  # 2147483647


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (HUGE, "string"),
        (HUGE + b"abc", "bytes"),
        (b"\x01", "string"),  # a length of -1
        (HUGE, {"type": "array", "items": "long"}),
        (HUGE + b"\0", {"type": "array", "items": "null"}),
        (b"\xfd\xff\xff\xff\x0f\x02\0", {"type": "array", "items": "null"}),
        (HUGE, {"type": "map", "values": "long"}),
        (b"\x04", ["null", "long"]),
        (b"\x01", ["null", "long"]),
        (b"\x04", {"type": "enum", "name": "e", "symbols": ["A", "B"]}),
        (b"\x80" * 11 + b"\0", "long"),
        (b"\x80", "long"),
        (b"", "long"),
    ],
)
def test_lengths_and_numbers_that_cannot_be_are_told_at_once(value, kind):
    assert check(value, kind) == MISFIT


def test_blocks_may_say_how_long_they_are():
    assert check(b"\x03\x04\x02\x04\0", {"type": "array", "items": "long"}) is None


def test_a_value_names_the_schema_that_it_is_walked_by():
    writers = {
        1: json.dumps({"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}),
        258: json.dumps(
            {"type": "record", "name": "r", "fields": [{"name": "a", "type": "float"}]}
        ),
    }
    checker = pickle.loads(pickle.dumps(RecordChecker(writers[258], writers, "orders-value")))  # noqa: S301
    assert checker.find_fault(None) is None
    assert checker.find_fault(b"\0\0\0\0\1\2") is None
    assert checker.find_fault(b"\0\0\0\1\2abcd") is None
    assert checker.find_fault(b"\0\0\0\1\2\2") == MISFIT
    assert checker.find_fault(b"\0\0\0\0\7\2") == "schema 7 is not one of orders-value: 1, 258"
    assert checker.find_fault(b"\1\0\0\0\1\2") == "the value names no schema"
    assert checker.find_fault(b"\0\0") == "the value names no schema"
