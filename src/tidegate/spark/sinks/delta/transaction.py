"""The pair that a batch leaves in a table's log, by which Delta passes over one that it holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrameWriter, SparkSession

_APP_ID = "spark.databricks.delta.write.txnAppId"
_VERSION = "spark.databricks.delta.write.txnVersion"


@dataclass(frozen=True)
class Transaction:
    """A batch of a writer, as a table's log names it."""

    app_id: str
    batch_id: int

    def mark(self, writer: DataFrameWriter) -> DataFrameWriter:
        """Have rows written by it."""
        return writer.option("txnAppId", self.app_id).option("txnVersion", self.batch_id)

    @contextmanager
    def set_on(self, session: SparkSession) -> Iterator[None]:
        """Have a MERGE made by it, which takes it from the session alone."""
        session.conf.set(_APP_ID, self.app_id)
        session.conf.set(_VERSION, str(self.batch_id))
        try:
            yield
        finally:
            # Left there, it would have every later write passed over.
            session.conf.unset(_APP_ID)
            session.conf.unset(_VERSION)
