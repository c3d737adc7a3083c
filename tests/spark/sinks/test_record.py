"""Columns as the parts of a Kafka record."""

import pytest
from pyspark.sql.types import StructType

from tidegate.core.errors import SinkError
from tidegate.core.spec.sinks.kafka import KafkaSink
from tidegate.spark.sinks.record import refuse_types, spell_bytes, spell_headers


def refuse(schema, **parts):
    refuse_types(KafkaSink(type="kafka", topic="t", **parts), StructType.fromDDL(schema))


@pytest.mark.parametrize(
    ("schema", "parts", "told"),
    [
        ("x array<int>", {"value": "x"}, "value must be one text, .* and x is array<int>"),
        ("x struct<a: int>", {"key": "X"}, "key must be one text, .* and X is struct<a:int>"),
        ("x variant", {"value": "x"}, "and x is variant"),
        ("x binary", {"partition": "x"}, "partition must be a number, and x is binary"),
        ("x map<string, binary>", {"headers": "x"}, "headers must be array<struct<key:string"),
        ("x array<struct<name: string, value: binary>>", {"headers": "x"}, "headers must be"),
        ("x array<struct<key: string, value: array<int>>>", {"headers": "x"}, "headers must be"),
    ],
)
def test_columns_that_kafka_cannot_take_are_told(spark, schema, parts, told):
    with pytest.raises(SinkError, match=f"The topic t cannot take the rows: .*{told}"):
        refuse(schema, **parts)


def test_single_values_are_sent_as_their_text_and_bytes_as_they_are(spark):
    schema = "n long, d decimal(5,2), at date, on_ boolean, b binary, s string, none int"
    for name in ("n", "d", "at", "on_", "b", "s", "none"):
        refuse(schema, value=name, key=name)
    rows = spark.sql(
        "SELECT 7L n, 1.50BD d, DATE'2026-01-31' at, true on_, X'00FF' b, 'x' s, int(null) none"
    )
    (row,) = rows.select(*[spell_bytes(rows.schema, name) for name in rows.columns]).collect()
    spelled = [None if value is None else bytes(value) for value in row]
    assert spelled == [b"7", b"1.50", b"2026-01-31", b"true", b"\x00\xff", b"x", None]


@pytest.mark.parametrize(("value", "spelled"), [("5", b"5"), ("X'05'", b"\x05")])
def test_headers_are_spelled_as_bytes_but_for_some(spark, value, spelled):
    names = "array('tidegate-row', 'n', 'tidegate-batch')"
    headers = f"transform({names}, name -> named_struct('key', name, 'value', {value}))"
    rows = spark.sql(f"SELECT {headers} more")
    refuse_types(KafkaSink(type="kafka", topic="t", headers="more"), rows.schema)
    (found,) = rows.select(spell_headers(rows.schema, "more", but="tidegate-")).first()
    assert [(one.key, bytes(one.value)) for one in found] == [("n", spelled)]
