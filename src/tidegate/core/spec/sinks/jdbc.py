"""A table of a relational database as a sink."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from tidegate.core.spec.base import check_pattern
from tidegate.core.spec.expectation import Expectation
from tidegate.core.spec.kafka import ConnectionName
from tidegate.core.spec.sinks.base import SinkModel, find_twins
from tidegate.core.spec.sinks.delta import NEEDED, Columns

_TABLE = r"([A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}"


class JdbcMode(StrEnum):
    """What a batch does to a table."""

    APPEND = "append"
    UPSERT = "upsert"


class JdbcSink(SinkModel):
    """A database's table, whose rows and batch's number are written in one transaction."""

    type: Literal["jdbc"]
    connection: ConnectionName
    table: Annotated[
        str,
        check_pattern(_TABLE, "a table's name or schema.table, each at most 63 letters, digits, _"),
        WithJsonSchema({"type": "string", "pattern": f"^{_TABLE}$"}),
    ]
    mode: JdbcMode = Field(
        default=JdbcMode.APPEND, description="append, or upsert by keys: the newest row of each."
    )
    keys: Columns = Field(default=(), description="For upsert: what a row is known by.")
    sequence: Columns = Field(
        default=(),
        description="For upsert: by which of two rows of a key the newer one is known.",
    )

    @property
    def rules(self) -> tuple[Expectation, ...]:
        """What the sink expects of its rows: such as a key, where it knows rows by one."""
        needed = (*self.keys, *self.sequence)
        return (*self.expect, *([Expectation(name=NEEDED, not_null=needed)] if needed else []))

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        yield from super().find_conflicts(given)
        for field in ("keys", "sequence"):
            yield from find_twins(field, given.get(field))
        is_upsert = given.get("mode") == JdbcMode.UPSERT
        missing = [field for field in ("keys", "sequence") if not given.get(field)]
        if is_upsert and missing:
            yield f"mode upsert needs {' and '.join(missing)}"
        if not is_upsert and len(missing) < len(("keys", "sequence")):
            yield "keys and sequence are only for mode upsert"
        yield from _find_left_out(given)


def _find_left_out(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the columns that the sink needs and its list of columns leaves out."""
    columns = given.get("columns")
    if not isinstance(columns, list | tuple) or not columns:
        return
    listed = {str(column).lower() for column in columns}
    for field in ("keys", "sequence"):
        needed = given.get(field) or ()
        needed = [needed] if isinstance(needed, str) else needed
        left_out = [str(column) for column in needed if str(column).lower() not in listed]
        if left_out:
            yield f"columns leaves out {', '.join(left_out)}, which {field} names"
