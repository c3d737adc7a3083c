"""Spark's types as PostgreSQL has them."""

from __future__ import annotations

import re

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    VarcharType,
    VariantType,
)

TYPES: dict[type[DataType], str] = {
    BooleanType: "boolean",
    ByteType: "smallint",
    ShortType: "smallint",
    IntegerType: "integer",
    LongType: "bigint",
    FloatType: "real",
    DoubleType: "double precision",
    DecimalType: "numeric",
    StringType: "text",
    CharType: "text",
    VarcharType: "text",
    BinaryType: "bytea",
    DateType: "date",
    TimeType: "time without time zone",
    TimestampType: "timestamp with time zone",
    TimestampNTZType: "timestamp without time zone",
    ArrayType: "jsonb",
    MapType: "jsonb",
    StructType: "jsonb",
    VariantType: "jsonb",
}
"""What a column of a new table is; a numeric has the decimal's precision and scale."""

ENUM = "enum"
"""Stands for every enumerated type."""

_WIDER = {
    "smallint": ("integer", "bigint"),
    "integer": ("bigint",),
    "real": ("double precision",),
    "text": ("character varying", "character", "citext", "jsonb", "uuid", ENUM),
    "jsonb": ("text",),
}
_DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}
_SIZED = re.compile(r"(?P<base>[a-z ]+)\((?P<sizes>[\d,-]+)\)")
_NESTED = (ArrayType, MapType, StructType, VariantType)
_JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",  # by default without microseconds
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def map_type(kind: DataType) -> str | None:
    """Map a type of Spark's; None where PostgreSQL has nothing for it."""
    if isinstance(kind, DecimalType):
        return f"numeric({kind.precision},{kind.scale})"
    return TYPES.get(type(kind))


def unmap_type(found: str) -> DataType:
    """Map a type of PostgreSQL's back; what Spark has nothing for is text."""
    base, sizes = _split(found)
    if base == "numeric" and len(sizes) == len(("precision", "scale")):
        return DecimalType(*sizes)
    plain = (BooleanType, ShortType, IntegerType, LongType, FloatType, DoubleType, BinaryType)
    timed = (DateType, TimeType, TimestampType, TimestampNTZType)
    return next((kind() for kind in (*plain, *timed) if TYPES[kind] == found), StringType())


def fits(kind: DataType, found: str) -> bool:
    """Whether a column of a table takes every value of a type as it is."""
    wanted = map_type(kind)
    if wanted is None:
        return False
    base, sizes = _split(found)
    if base == "numeric" and (isinstance(kind, DecimalType) or wanted in _DIGITS):
        return _has_room(kind, _DIGITS.get(wanted, 0), sizes)
    return found == wanted or base in _WIDER.get(wanted, ())


def shape(name: str, kind: DataType) -> Column:
    """Spell a column so that COPY reads it: what is no plain value becomes text."""
    column = F.col("`" + name.replace("`", "``") + "`")
    if isinstance(kind, _NESTED):
        column = F.to_json(column, _JSON_OPTIONS)
    elif isinstance(kind, BinaryType):
        column = F.concat(F.lit("\\x"), F.hex(column))
    elif isinstance(kind, TimeType):
        column = column.cast("string")
    return column


def _has_room(kind: DataType, digits: int, sizes: tuple[int, ...]) -> bool:
    # PostgreSQL would round what has more decimals than the column.
    if not sizes:
        return True
    precision, scale = sizes
    needed = (kind.precision, kind.scale) if isinstance(kind, DecimalType) else (digits, 0)
    return scale >= needed[1] and precision - scale >= needed[0] - needed[1]


def _split(found: str) -> tuple[str, tuple[int, ...]]:
    sized = _SIZED.fullmatch(found)
    if sized is None:
        return found, ()
    return sized["base"], tuple(map(int, sized["sizes"].split(",")))
