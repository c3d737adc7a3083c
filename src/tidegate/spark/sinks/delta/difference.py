"""What is different between the rows of a pipeline and the table that takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StructType,
)

_WIDER: tuple[tuple[type[DataType], ...], ...] = (
    (ByteType, ShortType, IntegerType, LongType),
    (FloatType, DoubleType),
)
_DIGITS: dict[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20}


class Kind(StrEnum):
    """How a column of rows and table is different."""

    NEW = "new"
    MISSING = "missing"
    OTHER_TYPE = "another type"


@dataclass(frozen=True)
class Difference:
    """A column that rows and table do not have in common."""

    column: str
    kind: Kind
    rows: DataType | None
    table: DataType | None


def find_differences(rows: StructType, table: StructType) -> Iterator[Difference]:
    """Find the columns that are new, missing or of a type which the table's cannot hold."""
    stored = {field.name.lower(): field for field in table.fields}
    given = {field.name.lower() for field in rows.fields}
    for field in rows.fields:
        known = stored.get(field.name.lower())
        if known is None:
            yield Difference(field.name, Kind.NEW, field.dataType, None)
        elif not can_hold(known.dataType, field.dataType):
            yield Difference(field.name, Kind.OTHER_TYPE, field.dataType, known.dataType)
    for field in table.fields:
        if field.name.lower() not in given:
            yield Difference(field.name, Kind.MISSING, None, field.dataType)


def can_hold(wide: DataType, narrow: DataType) -> bool:
    """Whether a type can hold every value of another."""
    if wide == narrow:
        return True
    match wide, narrow:
        case DecimalType(), DecimalType():
            digits = wide.precision - wide.scale >= narrow.precision - narrow.scale
            return digits and wide.scale >= narrow.scale
        case DecimalType(), _:
            return wide.precision - wide.scale >= _DIGITS.get(type(narrow), wide.precision + 1)
        case ArrayType(), ArrayType():
            return can_hold(wide.elementType, narrow.elementType)
        case MapType(), MapType():
            is_key = can_hold(wide.keyType, narrow.keyType)
            return is_key and can_hold(wide.valueType, narrow.valueType)
        case StructType(), StructType():
            return all(found.kind is Kind.MISSING for found in find_differences(narrow, wide))
    return any(
        type(wide) in chain
        and type(narrow) in chain
        and chain.index(type(wide)) > chain.index(type(narrow))
        for chain in _WIDER
    )


def find_renames(differences: Sequence[Difference]) -> list[tuple[str, str]]:
    """Find pairs of a missing column and a new one of its type, which may be the same renamed."""
    return [
        (old.column, new.column)
        for old in differences
        if old.kind is Kind.MISSING
        for new in differences
        if new.kind is Kind.NEW and new.rows == old.table
    ]


def render(differences: Sequence[Difference]) -> str:
    """Lay out differences as a table of plain text."""
    lines = [("column", "rows", "table", "")]
    lines += [
        (found.column, _spell(found.rows), _spell(found.table), found.kind.value)
        for found in differences
    ]
    widths = [max(len(line[n]) for line in lines) for n in range(3)]
    return "\n".join(
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(line[:3], widths, strict=True)), line[3]]
        ).rstrip()
        for line in lines
    )


def _spell(kind: DataType | None) -> str:
    return "-" if kind is None else kind.simpleString()
