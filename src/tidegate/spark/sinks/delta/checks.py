"""What keeps a Delta table from taking rows, told before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from tidegate.core.errors import SinkError
from tidegate.core.spec.sinks.delta import DeltaSink
from tidegate.spark.columns import is_comparable, list_absent, pick_fields
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


def find_unknown(
    table: str, location: str, rows: StructType, stored: StructType
) -> Iterator[SinkError]:
    """Find the columns of the rows that a table does not have."""
    unknown = pick_fields(rows, list_absent(rows.fieldNames(), stored.fieldNames()))
    if unknown.fields:
        named = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in unknown)
        yield SinkError(
            f"The table {table} has no column for {named}.",
            cause=f"It has {', '.join(stored.fieldNames())}.",
            remedy="Leave them out in the last step, or add them to the table: "
            f"ALTER TABLE delta.`{location}` ADD COLUMNS ({named}).",
        )


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
