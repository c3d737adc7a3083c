"""Writing a Delta table anew with each batch."""

from __future__ import annotations

from pyspark.sql import DataFrame

from tidegate.spark.sinks.delta.transaction import Transaction
from tidegate.spark.sinks.delta.writer import DeltaWriter

# All rows are replaced, and nothing else: a plain overwrite forgets how the table is clustered, and
# leaves older rows in other partitions where the session says so.
_ALL_ROWS = {"replaceWhere": "true", "partitionOverwriteMode": "static"}


class DeltaOverwrite(DeltaWriter):
    """A Delta table that has the rows of the newest batch, and columns of its own."""

    def _write(self, batch: DataFrame, transaction: Transaction) -> None:
        rows = self._pick(batch)
        self._create_clustered(rows.sparkSession, rows.schema)
        self._save(rows, transaction, mode="overwrite", options=_ALL_ROWS)
