"""Where each column of the rows goes in a table."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import StructType

from tidegate.core.spec.sinks.jdbc import JdbcSink
from tidegate.spark.sinks.columns import require_columns


@dataclass(frozen=True)
class Target:
    """A column of the table that a column of the rows goes to."""

    source: str
    name: str
    kind: str
    """Its type, as the database spells it."""


@dataclass(frozen=True)
class Layout:
    """A table, and what of the rows goes where in it."""

    schema: str
    table: str
    targets: tuple[Target, ...]
    keys: tuple[str, ...] = ()
    """What a row is known by; empty where rows are appended. In the table's spelling, as are all."""
    sequence: tuple[str, ...] = ()
    is_new: bool = False
    """The table is yet to be created."""

    @property
    def names(self) -> tuple[str, ...]:
        """The table's columns that are written."""
        return tuple(target.name for target in self.targets)

    @property
    def title(self) -> str:
        """What the table is called in words."""
        return f"{self.schema}.{self.table}"


def choose_columns(sink: JdbcSink, schema: StructType) -> StructType:
    """Choose the columns that a sink takes, in its order."""
    require_columns(sink.table, (*sink.columns, *sink.keys, *sink.sequence), schema)
    known = {field.name.lower(): field for field in schema.fields}
    return StructType([known[name.lower()] for name in sink.columns or schema.fieldNames()])


def lay_out(
    sink: JdbcSink, place: tuple[str, str], targets: list[Target], *, is_new: bool
) -> Layout:
    """Lay rows out in a table, given where each of their columns goes."""
    spelled = {target.source.lower(): target.name for target in targets}
    return Layout(
        *place,
        targets=tuple(targets),
        keys=tuple(spelled[name.lower()] for name in sink.keys),
        sequence=tuple(spelled[name.lower()] for name in sink.sequence),
        is_new=is_new,
    )
