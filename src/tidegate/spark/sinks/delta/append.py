"""Appending to a Delta table."""

from __future__ import annotations

from pyspark.sql import DataFrame

from tidegate.spark.sinks.delta.transaction import Transaction
from tidegate.spark.sinks.delta.writer import DeltaWriter


class DeltaAppend(DeltaWriter):
    """A Delta table that each batch is added to."""

    def _write(self, batch: DataFrame, transaction: Transaction) -> None:
        rows = self._pick(batch)
        self._create_clustered(rows.sparkSession, rows.schema)
        self._save(rows, transaction)
