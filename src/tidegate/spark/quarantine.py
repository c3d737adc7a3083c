"""The table of what was put aside: values that did not parse, rows that broke a rule."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tidegate.core.settings import Settings
from tidegate.core.spec.expectation import MALFORMED_RULE
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.sinks.delta import SchemaChange
from tidegate.spark.columns import spell_content
from tidegate.spark.gate import FAILED, Gate
from tidegate.spark.sinks.delta import DeltaAppend
from tidegate.spark.values.decoding import MALFORMED

_PLACE = {
    "topic": ("_topic", "string"),
    "partition": ("_partition", "int"),
    "offset": ("_offset", "long"),
    "timestamp": ("_timestamp", "timestamp"),
    "file": ("_file", "string"),
}
_RAW = {"key": "binary", "value": "binary"}


@dataclass(frozen=True)
class Quarantine:
    """Where a pipeline keeps what it puts aside, in one commit for each batch and sink."""

    run_id: str
    table: DeltaAppend
    number: int | None = None
    """What rows have as their batch; the batch's own where none is given."""

    @classmethod
    def of(cls, pipeline: Pipeline, settings: Settings, run_id: str) -> Quarantine:
        """Open the quarantine of a pipeline."""
        return cls(run_id, DeltaAppend(pipeline.quarantine_sink, settings, SchemaChange.EVOLVE))

    def write(
        self, parts: list[DataFrame], batch_id: int, query_id: str, sink: str | None = None
    ) -> int | None:
        """Write what was put aside in a batch, for all sinks or for one; say how many rows."""
        whole = reduce(DataFrame.unionByName, parts)
        labelled = whole.withColumns(
            {
                "run_id": F.lit(self.run_id),
                "batch_id": F.lit(batch_id if self.number is None else self.number).cast("long"),
                "quarantined_at": F.current_timestamp(),
            }
        )
        writer = query_id if sink is None else f"{query_id}:{sink}"
        return self.table.write(labelled, batch_id, writer).rows

    def read(self, session: SparkSession) -> DataFrame | None:
        """Read what was put aside; None where nothing was."""
        return None if self.table.read_schema(session) is None else self.table.read(session)

    def publish(self, session: SparkSession, parts: list[DataFrame], where: str, name: str) -> None:
        """Take over what was judged anew, in place of all that is there of the same places."""
        if not parts:
            if self.table.read_schema(session) is not None:
                DeltaTable.forPath(session, self.table.location).delete(where)
            return
        whole = reduce(DataFrame.unionByName, parts)
        is_placed = F.coalesce(F.expr(where), F.lit(False))
        unplaced = whole.where(~is_placed)
        if not unplaced.isEmpty():
            self.table.write(unplaced, 0, f"{name}:unplaced")
        self.table.within = where
        self.table.write(whole.where(is_placed), 0, name)


def shape_malformed(malformed: DataFrame) -> DataFrame:
    """Shape values that did not parse: their bytes, place and reason."""
    record = malformed.select(f"{MALFORMED}.*")
    return record.select(
        F.lit(MALFORMED_RULE).alias("rule"),
        F.col("reason"),
        _null("sink", "string"),
        *(_take(record, name, name, kind) for name, (_, kind) in _PLACE.items()),
        *(_take(record, name, name, kind) for name, kind in _RAW.items()),
        _null("row", "string"),
    )


def shape_failed(gate: Gate, marked: DataFrame) -> DataFrame:
    """Shape rows that broke a rule: all of the row as JSON, and where it came from."""
    rows = gate.put_aside(marked)
    row = spell_content(rows.drop(FAILED).columns)
    return rows.select(
        gate.name_rule().alias("rule"),
        gate.explain().alias("reason"),
        F.lit(gate.sink).cast("string").alias("sink"),
        *(_take(rows, column, name, kind) for name, (column, kind) in _PLACE.items()),
        *(_null(name, kind) for name, kind in _RAW.items()),
        row.alias("row"),
    )


def _take(rows: DataFrame, column: str, name: str, kind: str) -> Column:
    return F.col(column).cast(kind).alias(name) if column in rows.columns else _null(name, kind)


def _null(name: str, kind: str) -> Column:
    return F.lit(None).cast(kind).alias(name)
