"""Columns as the parts of a Kafka record: which ones Kafka can take, and how they are spelled."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    BinaryType,
    DataType,
    NullType,
    NumericType,
    SpatialType,
    StringType,
    StructType,
    VariantType,
)

from tidegate.core.errors import SinkError
from tidegate.core.spec.sinks.kafka import KafkaSink
from tidegate.spark.columns import pick_fields

HEADERS = "array<struct<key:string,value:binary>>"

_TEXT_HEADERS = "array<struct<key:string,value:string>>"
_SINGLE = "must be one text, number, date, time or bytes"


def refuse_types(sink: KafkaSink, schema: StructType) -> None:
    """Refuse columns that Kafka cannot take as what the sink says they are."""
    parts = (
        ("value", sink.value, _can_be_bytes, _SINGLE),
        ("key", sink.key, _can_be_bytes, _SINGLE),
        ("partition", sink.partition, _can_be_number, "must be a number"),
        ("headers", sink.headers, _can_be_headers, f"must be {HEADERS}"),
    )
    problems = [
        f"{part} {rule}, and {name} is {find_type(schema, name).simpleString()}"
        for part, name, fits, rule in parts
        if name and not fits(find_type(schema, name))
    ]
    if problems:
        raise SinkError(
            f"The topic {sink.topic} cannot take the rows: {'; '.join(problems)}.",
            remedy="Turn the column into another in a step, as by to_json(…); or name no value, and "
            "all columns are sent as JSON.",
        )


def find_type(schema: StructType, name: str) -> DataType:
    """Find the type of a column, in whatever case it is named."""
    return pick_fields(schema, [name]).fields[0].dataType


def spell_bytes(schema: StructType, name: str | None) -> Column:
    """Spell a column as bytes: those that it is, or those of its text."""
    if name is None:
        return F.lit(None).cast("binary")
    is_binary = isinstance(find_type(schema, name), BinaryType)
    return F.col(name) if is_binary else F.col(name).cast("string").cast("binary")


def spell_headers(schema: StructType, name: str | None, but: str) -> Column:
    """Spell a column as headers; leave out those whose names begin with something."""
    if name is None:
        return F.lit(None).cast(HEADERS)
    kind = find_type(schema, name)
    is_binary = kind.simpleString().endswith("binary>>")
    given = (F.col(name) if is_binary else F.col(name).cast(_TEXT_HEADERS)).cast(HEADERS)
    # One without a name is left for Kafka to refuse.
    return F.filter(given, lambda one: ~F.coalesce(one.key.startswith(but), F.lit(False)))


def _can_be_bytes(kind: DataType) -> bool:
    is_single = isinstance(kind, AtomicType | NullType)
    return is_single and not isinstance(kind, VariantType | SpatialType)


def _can_be_number(kind: DataType) -> bool:
    return isinstance(kind, NumericType | StringType | NullType)


def _can_be_headers(kind: DataType) -> bool:
    header = kind.elementType if isinstance(kind, ArrayType) else None
    if not isinstance(header, StructType) or header.names != ["key", "value"]:
        return False
    return all(_can_be_bytes(field.dataType) for field in header.fields)
