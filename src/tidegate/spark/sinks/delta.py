"""Appending to a Delta table, each batch exactly once."""

from __future__ import annotations

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import SinkError
from tidegate.core.ledger import SinkRecord
from tidegate.core.settings import Settings
from tidegate.core.spec.sink import DeltaSink
from tidegate.spark.sources import first_line


class DeltaAppend:
    """A Delta table that a query appends to.

    The transaction pair (query id and sink, batch id) goes into the same commit as the rows, so
    that Delta itself passes over a batch it already holds.
    """

    def __init__(self, sink: DeltaSink, settings: Settings) -> None:
        self.sink = sink
        self._location = settings.locate_url(sink.table)
        self._log = DeltaLog(settings.locate(sink.table))
        self._version = self._log.find_version()

    def prepare(self, session: SparkSession, schema: StructType) -> None:
        """Check the columns, and create the table if it is missing."""
        missing = [
            column
            for column in (*self.sink.partition_by, *self.sink.cluster_by)
            if column.lower() not in {field.name.lower() for field in schema.fields}
        ]
        if missing:
            raise SinkError(
                f"The sink {self.sink.table} is laid out by {', '.join(missing)}, which its rows "
                "do not have.",
                remedy=f"Choose out of {', '.join(schema.fieldNames())}.",
            )
        if self._version is None:
            self._create(session, schema)
            self._version = self._log.require_version()

    def _create(self, session: SparkSession, schema: StructType) -> None:
        builder = DeltaTable.createIfNotExists(session).location(self._location).addColumns(schema)
        if self.sink.partition_by:
            builder = builder.partitionedBy(*self.sink.partition_by)
        if self.sink.cluster_by:
            builder = builder.clusterBy(*self.sink.cluster_by)
        try:
            builder.execute()
        except AnalysisException as error:
            raise SinkError(
                f"The table {self._location} cannot be created: {first_line(error)}",
                remedy="Correct the sink in the spec.",
            ) from error

    def write(self, batch: DataFrame, batch_id: int, query_id: str) -> SinkRecord:
        """Append a batch, unless the table holds it already."""
        app_id = self.sink.name_writer(query_id)
        before = self._version
        writer = batch.write.format("delta").mode("append")
        writer.option("txnAppId", app_id).option("txnVersion", batch_id).save(self._location)
        self._version = self._log.require_version()
        commit = self._log.find_batches(app_id, (batch_id,)).get(batch_id)
        if commit is None:
            return SinkRecord(rows=None, version=self._version, is_replay=True)
        is_replay = before is not None and commit.version <= before
        return SinkRecord(rows=commit.rows, version=commit.version, is_replay=is_replay)
