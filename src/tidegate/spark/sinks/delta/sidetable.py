"""What a table cannot show and its writer must know, in a table inside its folder."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from tidegate.core.deltalog import DeltaLog
from tidegate.core.settings import Settings
from tidegate.spark.sinks.delta.transaction import Transaction


class SideTable:
    """A Delta table inside the folder of another one, which it serves."""

    def __init__(self, settings: Settings, table: str, name: str) -> None:
        self._location = settings.locate_url(f"{table}/{name}")
        self._log = DeltaLog(settings.locate(f"{table}/{name}"))

    @property
    def exists(self) -> bool:
        """Whether anything was ever added."""
        return self._log.find_version() is not None

    def read(self, session: SparkSession) -> DataFrame:
        """Read what was added."""
        return session.read.format("delta").load(self._location)

    def add(self, rows: DataFrame, transaction: Transaction) -> None:
        """Add rows, unless those of the batch are there already."""
        writer = rows.write.format("delta").mode("append").option("mergeSchema", "true")
        # Nobody else looks after its files, of which each batch leaves some.
        writer = writer.option("delta.autoOptimize.autoCompact", "true")
        transaction.mark(writer).save(self._location)
