"""Change records into the rows that they tell of, for a sink that knows rows by a key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructType

from tidegate.core.errors import TransformError
from tidegate.core.spec.files import CORRUPT_RECORD, PROVENANCE
from tidegate.core.spec.transform import ChangeFormat, ChangesStep
from tidegate.spark.sources import first_line

DELETED = "_deleted"
"""Whether a change says that its row is gone."""

SEQUENCE = "_sequence"
"""By which the newer of two changes is known."""

_ADDED = (DELETED, SEQUENCE)
_ENVELOPE = ("before", "after", "op")
_PAYLOAD = "payload"
_FEED = ("_change_type", "_commit_version", "_commit_timestamp")
_ROW = "__tidegate_row"


def read_changes(rows: DataFrame, step: ChangesStep, name: str) -> DataFrame:
    """Turn change records into rows, each with what became of it and since when."""
    match step.changes:
        case ChangeFormat.DEBEZIUM:
            return _read_debezium(rows, step.sequence or "ts_ms", name)
        case ChangeFormat.DELTA:
            return _read_feed(rows, name)


def _read_debezium(rows: DataFrame, sequence: str, name: str) -> DataFrame:
    records = _open_payload(rows)
    problems = list(_find_problems(records))
    if problems:
        raise TransformError(
            f"{name} reads no change records of Debezium: {'; '.join(problems)}.",
            cause=f"Its input is {rows.schema.simpleString()}.",
            remedy="Name before, after (structs of the same columns) and op in the source's "
            "schema, as they are or inside payload.",
        )
    is_delete = F.col("op") == "d"
    try:
        changes = records.where(_is_change(records.columns)).select(
            F.when(is_delete, F.col("before")).otherwise(F.col("after")).alias(_ROW),
            is_delete.alias(DELETED),
            F.expr(sequence).alias(SEQUENCE),
        )
    except (AnalysisException, ParseException) as error:
        raise TransformError(
            f"{name} cannot order changes by {sequence}: {first_line(error)}",
            cause=f"A change has {', '.join(records.columns)}.",
            remedy="Correct the step's sequence in the spec.",
        ) from error
    return changes.select(f"{_ROW}.*", *_ADDED)


def _open_payload(rows: DataFrame) -> DataFrame:
    """Take the envelope out of the form that has its schema beside it."""
    payload = dict(zip(rows.columns, rows.schema.fields, strict=True)).get(_PAYLOAD)
    if payload is None or not isinstance(payload.dataType, StructType):
        return rows
    inner = {field.name.lower() for field in payload.dataType.fields}
    beside = [_refer(each) for each in rows.columns if each.lower() not in {_PAYLOAD, *inner}]
    return rows.select(f"{_PAYLOAD}.*", *beside)


def _find_problems(records: DataFrame) -> Iterator[str]:
    types = {field.name.lower(): field.dataType for field in records.schema.fields}
    missing = [column for column in _ENVELOPE if column not in types]
    if missing:
        yield f"there is no {', '.join(missing)}"
    before, after = types.get("before"), types.get("after")
    for column, kind in (("before", before), ("after", after)):
        if kind is not None and not isinstance(kind, StructType):
            yield f"{column} is {kind.simpleString()}, not a struct"
    if before and after and before.simpleString() != after.simpleString():
        yield "before and after have different columns"
    if not isinstance(types.get("op", StringType()), StringType):
        yield f"op is {types['op'].simpleString()}, not a string"
    if isinstance(after, StructType):
        yield from _find_clashes(after.fieldNames())


def _find_clashes(columns: Iterable[str]) -> Iterator[str]:
    clashing = [column for column in columns if column.lower() in _ADDED]
    if clashing:
        yield f"its rows have {', '.join(clashing)}, which the step is to add"


def _is_change(columns: Iterable[str]) -> Column:
    """Whether a record is the change of a row; one that cannot be taken as such fails."""
    op = F.col("op")
    is_corrupt = F.col(CORRUPT_RECORD).isNotNull() if CORRUPT_RECORD in columns else F.lit(False)
    file = PROVENANCE[0]
    place = F.concat(F.lit(" in "), F.col(file)) if file in columns else F.lit("")
    corrupt = F.raise_error(
        F.concat(
            F.lit("A change record"),
            place,
            F.lit(
                f" does not parse, so that what became of its row is not known. It is in "
                f"{CORRUPT_RECORD}: leave such records out by a step before, or mend them."
            ),
        )
    )
    is_nothing = op.isNull() & F.col("before").isNull() & F.col("after").isNull()
    truncated = F.raise_error(
        F.lit(
            "A change record says that its whole table was truncated (op t), which cannot be told "
            "row by row. Have the connector leave it out (skipped.operations: t), and clear the "
            "table that the changes go to."
        )
    )
    unknown = F.raise_error(
        F.concat(F.lit("A change record has an op that is none of c, r, u and d: "), _tell(op))
    )
    return (
        F.when(is_corrupt, corrupt.cast("boolean"))  # fields that did not parse are null
        .when(op.isin("c", "r", "u", "d"), True)
        .when(is_nothing, False)  # what follows a delete, for Kafka to forget the key
        .when(op == "t", truncated.cast("boolean"))
        .otherwise(unknown.cast("boolean"))
    )


def _tell(value: Column) -> Column:
    return F.coalesce(value, F.lit("null"))


def _read_feed(rows: DataFrame, name: str) -> DataFrame:
    known = {column.lower() for column in rows.columns}
    problems = [f"there is no {column}" for column in _FEED[:2] if column not in known]
    columns = [column for column in rows.columns if column.lower() not in _FEED]
    problems += _find_clashes(columns)
    if problems:
        raise TransformError(
            f"{name} reads no change data feed: {'; '.join(problems)}.",
            cause=f"Its input has the columns {', '.join(rows.columns)}.",
            remedy="Say change_data_feed: true in the source, and have this step first.",
        )
    is_delete = F.col("_change_type") == "delete"
    # A version may delete a row and insert it anew, and then the insert is what counts.
    sequence = F.col("_commit_version") * 2 + F.when(is_delete, 0).otherwise(1)
    changes = rows.where(F.col("_change_type") != "update_preimage")
    return changes.select(
        *map(_refer, columns), is_delete.alias(DELETED), sequence.cast("long").alias(SEQUENCE)
    )


def _refer(name: str) -> Column:
    return F.col("`" + name.replace("`", "``") + "`")
