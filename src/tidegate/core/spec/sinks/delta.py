"""A Delta table as a sink: appended to, kept up to date, with history, or written anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from tidegate.core.spec.base import Column, Location
from tidegate.core.spec.expectation import Condition, Expectation
from tidegate.core.spec.sinks.base import SinkModel, find_twins


class DeltaMode(StrEnum):
    """What a batch does to a table."""

    APPEND = "append"
    UPSERT = "upsert"
    SCD2 = "scd2"
    OVERWRITE = "overwrite"


class SchemaChange(StrEnum):
    """What becomes of columns that a table does not have."""

    FAIL = "fail"
    EVOLVE = "evolve"
    RESCUE = "rescue"


NEEDED = "needed_columns"
"""The rule that a row has what its sink knows it by."""

KEYED = frozenset({DeltaMode.UPSERT, DeltaMode.SCD2})
_KEYED_FIELDS = ("keys", "sequence", "delete_when")
_HISTORY = {"valid_from": "valid_from", "valid_to": "valid_to", "current": "is_current"}

Columns = Annotated[
    tuple[Column, ...],
    BeforeValidator(
        lambda value: (value,) if isinstance(value, str) else value,
        json_schema_input_type=Column | list[Column],
    ),
]
"""One column, or several."""


def name_writer(query_id: str, sink: str, route: str | None = None) -> str:
    """Name what writes to a table; never a constant, since Delta passes over its older batches."""
    return f"{query_id}:{sink}" + ("" if route is None else f":{route}")


class DeltaSink(SinkModel):
    """A Delta table, which takes each batch once; it is created if it is missing."""

    type: Literal["delta"]
    table: Location
    mode: DeltaMode = Field(
        default=DeltaMode.APPEND,
        description="append; upsert keeps the newest row of each key; scd2 keeps every version of "
        "it; overwrite replaces the table's rows by the batch's.",
    )
    partition_by: tuple[Column, ...] = ()
    cluster_by: tuple[Column, ...] = ()
    route_by: Column | None = Field(
        default=None,
        description="The column that names the table, below `table`; it is not written itself.",
    )
    keys: Columns = Field(default=(), description="For upsert and scd2: what a row is known by.")
    sequence: Columns = Field(
        default=(),
        description="For upsert and scd2: by which of two rows of a key the newer one is known.",
    )
    delete_when: Condition | None = Field(
        default=None, description="For upsert and scd2: rows that say that their key is gone."
    )
    track: Columns = Field(
        default=(),
        description="For scd2: only a change of these makes a new version; of all others, a "
        "version has the newest.",
    )
    valid_from: Column | None = Field(
        default=None, description="For scd2: since when a version holds; valid_from by default."
    )
    valid_to: Column | None = Field(
        default=None, description="For scd2: until when; null in the current one. valid_to."
    )
    current: Column | None = Field(
        default=None, description="For scd2: whether a version is the current one. is_current."
    )

    @property
    def rules(self) -> tuple[Expectation, ...]:
        """What the sink expects of its rows: such as a key, where it knows rows by one."""
        needed = (*self.keys, *self.sequence, *([self.route_by] if self.route_by else []))
        return (*self.expect, *([Expectation(name=NEEDED, not_null=needed)] if needed else []))

    @property
    def history_columns(self) -> tuple[str, str, str]:
        """The columns that scd2 adds: since when, until when, whether current."""
        since, until, current = _name_history(self.__dict__)
        return since, until, current

    def name_writer(self, query_id: str, route: str | None = None) -> str:
        """Name a query to the table; with a batch's id it makes a transaction of its own."""
        return name_writer(query_id, self.name, route)

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        yield from super().find_conflicts(given)
        if given.get("partition_by") and given.get("cluster_by"):
            yield "takes partition_by or cluster_by, not both: Delta refuses the two"
        for field in ("partition_by", "cluster_by", "keys", "sequence", "track"):
            yield from find_twins(field, given.get(field))
        mode = next((m for m in DeltaMode if m == given.get("mode", DeltaMode.APPEND)), None)
        if mode in KEYED:
            missing = [field for field in ("keys", "sequence") if not given.get(field)]
            if missing:
                yield f"mode {mode} needs {' and '.join(missing)}"
        elif mode:
            needless = [field for field in _KEYED_FIELDS if given.get(field)]
            if needless:
                yield f"mode {mode} takes no {', '.join(needless)}; modes upsert and scd2 do"
        named = [field for field in ("track", *_HISTORY) if given.get(field)]
        if mode and mode is not DeltaMode.SCD2 and named:
            yield f"{', '.join(named)} is only for mode scd2"
        yield from find_twins("the history", _name_history(given))
        if given.get("route_by") and mode in (*KEYED, DeltaMode.OVERWRITE):
            yield f"route_by is only for mode append, not {mode}"
        yield from _find_left_out(given)


def _name_history(given: Mapping[str, Any]) -> list[str]:
    """Name the columns of a history: since when, until when, whether current."""
    return [str(given.get(field) or name) for field, name in _HISTORY.items()]


def _find_left_out(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the columns that the sink needs and its list of columns leaves out."""
    columns = given.get("columns")
    if not isinstance(columns, list | tuple) or not columns:
        return
    listed = {str(column).lower() for column in columns}
    added = {name.lower() for name in _name_history(given)}
    for field in ("keys", "sequence", "track", "partition_by", "cluster_by"):
        named = given.get(field)
        needed = named if isinstance(named, list | tuple) else [named] if named else []
        present = listed | added if field in {"partition_by", "cluster_by"} else listed
        left_out = [str(column) for column in needed if str(column).lower() not in present]
        if left_out:
            yield f"columns leaves out {', '.join(left_out)}, which {field} names"
