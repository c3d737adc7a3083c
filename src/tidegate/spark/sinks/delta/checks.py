"""What keeps a Delta table from taking rows, told before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

from tidegate.core.errors import SinkError
from tidegate.core.spec.sinks.delta import DeltaSink
from tidegate.spark.columns import is_comparable, list_absent, pick_fields
from tidegate.spark.sinks.delta.difference import (
    Kind,
    find_differences,
    find_renames,
    render,
)
from tidegate.spark.sources import first_line

_LAYOUT = frozenset({"partition_by", "cluster_by"})


def raise_all(table: str, mistakes: Sequence[SinkError]) -> None:
    """Raise what was found, all of it in one error."""
    if len(mistakes) > 1:
        told = " ".join(f"({number}) {each}" for number, each in enumerate(mistakes, start=1))
        raise SinkError(
            f"The sink {table} cannot take its rows, for {len(mistakes)} reasons: {told}"
        )
    if mistakes:
        raise mistakes[0]


def find_lacking(
    sink: DeltaSink, uses: Mapping[str, str], schema: StructType, added: Iterable[str] = ()
) -> Iterator[SinkError]:
    """Find the columns that a sink names and its rows do not have; added ones do for a layout."""
    lacking: dict[str, list[str]] = {}
    for field, use in uses.items():
        given = getattr(sink, field)
        named = [given] if isinstance(given, str) else given
        present = [*schema.fieldNames(), *(added if field in _LAYOUT else ())]
        lacking.setdefault(use, []).extend(list_absent(named, present))
    for use, names in lacking.items():
        if names:
            yield SinkError(
                f"The sink {sink.table} {use} {', '.join(names)}, which its rows do not have.",
                remedy=f"Choose out of {', '.join(schema.fieldNames())}.",
            )


def find_changes(
    table: str, location: str, rows: StructType, stored: StructType, *, takes_new: bool
) -> Iterator[SinkError]:
    """Find what became of the rows' columns that a table does not take by itself."""
    differences = list(find_differences(rows, stored))
    new = [found for found in differences if found.kind is Kind.NEW]
    retyped = [found.column for found in differences if found.kind is Kind.OTHER_TYPE]
    renamed = find_renames(differences) if takes_new else []
    named = ", ".join(f"{found.column} {_spell(found.rows)}" for found in new)
    facts, remedies = [], []
    if new and not takes_new:
        facts.append(f"has no column for {named}")
        remedies.append(
            "To take new columns, say schema_change: evolve, or add them by ALTER TABLE "
            f"delta.`{location}` ADD COLUMNS ({named}); or leave them out in the last step."
        )
    if renamed:
        facts.append(" and ".join(f"may have {new} under the name {old}" for old, new in renamed))
        remedies.append(
            "If a column was renamed, give it its old name in the last step. If it is another one, "
            f"add it by hand: ALTER TABLE delta.`{location}` ADD COLUMNS ({named})."
        )
    if retyped:
        facts.append(f"has {', '.join(retyped)} of a type that cannot hold what the rows have")
        remedies.append("Cast it in the last step, or write to a new table.")
    if facts:
        yield SinkError(
            f"The table {table} {'; it '.join(facts)}.",
            cause=f"It has {', '.join(stored.fieldNames())}.\n\n{render(differences)}\n\n",
            remedy=" ".join(remedies),
        )


def _spell(kind: DataType | None) -> str:
    return kind.simpleString() if kind else ""


def find_incomparable(
    sink: DeltaSink, names: Iterable[str], schema: StructType
) -> Iterator[SinkError]:
    """Find the columns that rows are to be compared by and cannot be."""
    for field in pick_fields(schema, names).fields:
        if not is_comparable(field.dataType):
            yield SinkError(
                f"The sink {sink.table} cannot compare its rows by {field.name}.",
                cause=f"Spark puts no order into {field.dataType.simpleString()}.",
                remedy="Take what counts out of it as a column of its own, in the last step.",
            )


def find_bad_condition(
    sink: DeltaSink, session: SparkSession, schema: StructType
) -> Iterator[SinkError]:
    """Find out whether the condition for deletes is one on the rows."""
    if sink.delete_when is None:
        return
    try:
        session.createDataFrame([], schema).where(sink.delete_when)
    except (AnalysisException, ParseException) as error:
        yield SinkError(
            f"delete_when of the sink {sink.table} is no condition on its rows: "
            f"{first_line(error)}",
            cause=f"They have the columns {', '.join(schema.fieldNames())}.",
            remedy="Correct delete_when in the spec.",
        )
