"""Appending to a Delta table."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from tidegate.core.errors import SinkError
from tidegate.core.settings import Settings
from tidegate.core.spec.sinks.delta import DeltaSink, SchemaChange
from tidegate.core.spec.unknown import RESCUED
from tidegate.spark.columns import list_absent, pick_fields, refer
from tidegate.spark.sinks.delta.transaction import Transaction
from tidegate.spark.sinks.delta.writer import DeltaWriter


class DeltaAppend(DeltaWriter):
    """A Delta table that each batch is added to."""

    within: str | None = None
    """Of which rows a batch is all there are, for a backfill: of two that bring them at the same
    time, Delta then refuses the later one."""

    def __init__(
        self,
        sink: DeltaSink,
        settings: Settings,
        policy: SchemaChange = SchemaChange.FAIL,
        *,
        route: str | None = None,
    ) -> None:
        super().__init__(sink, settings, policy, route=route)
        self._rescues = policy is SchemaChange.RESCUE
        self._strays: list[str] = []

    def _write(self, batch: DataFrame, transaction: Transaction) -> None:
        rows = self._rescue(self._pick(batch))
        self._create_clustered(rows.sparkSession, rows.schema)
        if self.within is None:
            self._save(rows, transaction)
        else:
            self._save(rows, transaction, mode="overwrite", options={"replaceWhere": self.within})

    def _compare(self, rows: StructType, stored: StructType) -> Iterator[SinkError]:
        if self._rescues:
            # A table that has none yet is given one; it is no other column by a new name.
            added = list_absent([RESCUED], stored.fieldNames())
            rows = pick_fields(rows, list_absent(rows.fieldNames(), added))
            self._strays = list_absent(rows.fieldNames(), stored.fieldNames())
        yield from super()._compare(rows, stored)
        if self._strays:
            print(
                f"tidegate: {self.table} has no column for {', '.join(self._strays)}: kept in "
                f"{RESCUED}; schema_change: evolve adds columns.",
                flush=True,
            )

    def _rescue(self, rows: DataFrame) -> DataFrame:
        """Keep columns that the table does not have as JSON."""
        if not self._strays:
            return rows
        strays = F.nullif(F.to_json(F.struct(*refer(self._strays))), F.lit("{}"))
        rescued = _join(F.col(RESCUED), strays) if RESCUED in rows.columns else strays
        return rows.withColumn(RESCUED, rescued).drop(*self._strays)


def _join(one: Column, other: Column) -> Column:
    """Make one JSON object of two that have at least a field each, or of the one that there is."""
    joined = F.concat(
        F.substr(one, F.lit(1), F.length(one) - 1), F.lit(","), F.substr(other, F.lit(2))
    )
    return F.coalesce(joined, one, other)
