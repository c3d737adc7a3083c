"""Adding files to a folder, each batch once, by Spark's own file sink."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tidegate.core.filesink import find_newest_batch
from tidegate.core.ledger import SinkRecord
from tidegate.core.settings import Settings
from tidegate.core.spec.sinks.files import FilesSink, WrittenFormat
from tidegate.spark.columns import choose_columns
from tidegate.spark.hold import hold
from tidegate.spark.sinks.columns import require_columns

_PACKAGE = "org.apache.spark.sql.execution"
_FORMATS = {
    WrittenFormat.PARQUET: "datasources.parquet.ParquetFileFormat",
    WrittenFormat.JSON: "datasources.json.JsonFileFormat",
    WrittenFormat.CSV: "datasources.csv.CSVFileFormat",
    WrittenFormat.ORC: "datasources.orc.OrcFileFormat",
}


class FilesWriter:
    """A folder that a query adds files to.

    Spark's file sink is used as Spark itself would use it, one batch at a time, so that its log decides
    which files count. Called from within a batch, it can be one sink of several.
    """

    is_observed = False  # the sink runs its rows where an observation does not see them

    def __init__(self, sink: FilesSink, settings: Settings) -> None:
        self.sink = sink
        self.name = sink.name
        self._folder = settings.locate(sink.path)
        self._location = settings.locate_url(sink.path)

    def prepare(self, session: SparkSession, schema: StructType) -> None:  # noqa: ARG002
        """Check that the columns are there."""
        require_columns(self.sink.path, (*self.sink.columns, *self.sink.partition_by), schema)

    def read_schema(self, session: SparkSession) -> StructType | None:  # noqa: ARG002
        """Say that a folder has no columns of its own."""
        return None

    def write(self, batch: DataFrame, batch_id: int, query_id: str) -> SinkRecord:  # noqa: ARG002
        """Add a batch's files, unless the folder's log has it already."""
        newest = find_newest_batch(self._folder)
        if newest is not None and batch_id <= newest:
            return SinkRecord(rows=None, version=None, is_replay=True)
        with hold(choose_columns(batch, self.sink.columns)) as rows:
            count = rows.count()
            self._open(rows.sparkSession).addBatch(batch_id, rows._jdf)  # noqa: SLF001
        return SinkRecord(rows=count, version=None)

    def _open(self, session: SparkSession) -> Any:
        jvm: Any = session._jvm  # noqa: SLF001
        file_format = getattr(jvm, f"{_PACKAGE}.{_FORMATS[self.sink.format]}")()
        to_seq = jvm.PythonUtils.toSeq
        to_map = jvm.PythonUtils.toScalaMap
        sink = getattr(jvm, f"{_PACKAGE}.streaming.sinks.FileStreamSink")
        return sink(
            session._jsparkSession,  # noqa: SLF001
            self._location,
            file_format,
            to_seq(list(self.sink.partition_by)),
            to_map(dict(self.sink.options)),
        )
