"""A Delta sink on its own: batches in, the table as it is then."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidegate.core.deltalog import DeltaLog
from tidegate.core.ledger import SinkRecord
from tidegate.core.settings import Settings
from tidegate.core.spec.sinks.delta import DeltaSink

QUERY = "query"
_SMALL = {
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
}


def open_small_session(spark: SparkSession) -> SparkSession:
    """Open a session that spends no time on what pays for large data only."""
    session = spark.newSession()
    for key, value in _SMALL.items():
        session.conf.set(key, value)
    return session


@dataclass
class Bench:
    """Writes batches of rows to one table, by writers that are opened anew whenever asked."""

    session: SparkSession
    settings: Settings
    kind: type
    schema: str
    sink: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    _writer: Any = None
    _next: int = 0

    def __post_init__(self) -> None:
        self.reopen()

    def reopen(self, **changed: Any) -> Any:
        """Open the sink as another run does."""
        self.sink |= changed
        given = {"type": "delta", "table": "out"} | self.sink
        self._writer = self.kind(DeltaSink.model_validate(given), self.settings, **self.options)
        return self._writer

    def make(self, rows: list[tuple], schema: str | None = None) -> DataFrame:
        frame = self.session.createDataFrame(rows, schema or self.schema)
        return frame.coalesce(1)

    def prepare(self, schema: str | None = None) -> None:
        self._writer.prepare(self.session, self.make([], schema).schema)

    def write(
        self, *rows: tuple, batch_id: int | None = None, schema: str | None = None
    ) -> SinkRecord:
        """Write a batch, the next one unless told."""
        if batch_id is None:
            batch_id = self._next
        self._next = batch_id + 1
        return self._writer.write(self.make(list(rows), schema), batch_id, QUERY)

    @property
    def table(self) -> str:
        return self.sink.get("table", "out")

    @property
    def log(self) -> DeltaLog:
        return DeltaLog(self.settings.locate(self.table))

    def read(self, *columns: str, table: str | None = None) -> list[tuple]:
        """Read the table, in order."""
        location = self.settings.locate_url(table or self.table)
        frame = self.session.read.format("delta").load(location)
        rows = [tuple(row) for row in (frame.select(*columns) if columns else frame).collect()]
        return sorted(rows, key=lambda row: [(value is not None, str(value)) for value in row])

    def describe(self) -> dict[str, Any]:
        """Read how the table is laid out."""
        location = self.settings.locate_url(self.table)
        return self.session.sql(f"DESCRIBE DETAIL delta.`{location}`").first().asDict()
