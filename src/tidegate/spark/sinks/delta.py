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

    is_observed = True

    def __init__(self, sink: DeltaSink, settings: Settings, *, evolves: bool = False) -> None:
        self.sink = sink
        self.name = sink.name
        self._evolves = evolves
        self._location = settings.locate_url(sink.table)
        self._log = DeltaLog(settings.locate(sink.table))
        self._version = self._log.find_version()

    def prepare(self, session: SparkSession, schema: StructType) -> None:
        """Check, before anything is written, that the table can take the rows."""
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
        if not self._evolves:
            self._compare_columns(session, schema)

    def read_schema(self, session: SparkSession) -> StructType | None:
        """Read the table's columns; None where it is yet to be created."""
        if self._version is None:
            return None
        return session.read.format("delta").load(self._location).schema

    def _compare_columns(self, session: SparkSession, schema: StructType) -> None:
        table = self.read_schema(session)
        if table is None:
            return
        known = {field.name.lower(): field.dataType for field in table.fields}
        unknown = [field for field in schema.fields if field.name.lower() not in known]
        if unknown:
            named = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in unknown)
            raise SinkError(
                f"The table {self.sink.table} has no column for {named}.",
                cause=f"It has {', '.join(table.fieldNames())}.",
                remedy="Leave them out in the last step, or add them to the table: "
                f"ALTER TABLE delta.`{self._location}` ADD COLUMNS ({named}).",
            )

    def write(self, batch: DataFrame, batch_id: int, query_id: str) -> SinkRecord:
        """Append a batch, unless the table holds it already."""
        app_id = self.sink.name_writer(query_id)
        before = self._version
        writer = batch.write.format("delta").mode("append")
        if before is None and self.sink.partition_by:
            writer = writer.partitionBy(*self.sink.partition_by)
        if self._evolves:
            writer = writer.option("mergeSchema", "true")
        try:
            if before is None and self.sink.cluster_by:
                self._create_clustered(batch)
            writer.option("txnAppId", app_id).option("txnVersion", batch_id).save(self._location)
        except AnalysisException as error:
            raise SinkError(
                f"The table {self.sink.table} does not take the batch: {first_line(error)}",
                cause=f"Its rows are {batch.schema.simpleString()}.",
                remedy="Cast the columns in the last step, or correct the sink in the spec.",
            ) from error
        self._version = self._log.require_version()
        commit = self._log.find_batches(app_id, (batch_id,)).get(batch_id)
        if commit is None:
            return SinkRecord(rows=None, version=self._version, is_replay=True)
        is_replay = before is not None and commit.version <= before
        return SinkRecord(rows=commit.rows, version=commit.version, is_replay=is_replay)

    def _create_clustered(self, batch: DataFrame) -> None:
        # Otherwise the first append creates the table, so that a run that fails leaves none; but it
        # cannot cluster.
        builder = DeltaTable.createIfNotExists(batch.sparkSession).location(self._location)
        builder.addColumns(batch.schema).clusterBy(*self.sink.cluster_by).execute()
