"""Appending by any format of Spark's, each batch at least once."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from upath import UPath

from tidegate.core.connection import read_connection
from tidegate.core.errors import SinkError
from tidegate.core.ledger import SinkRecord
from tidegate.core.spec.sinks.spark import SparkSink
from tidegate.spark.columns import choose_columns
from tidegate.spark.sinks.columns import require_columns
from tidegate.spark.sinks.marker import BatchMarker
from tidegate.spark.sources import first_line


class SparkWriter:
    """Whatever a format of Spark's writes to.

    Nothing is known of it, so a batch whose driver was killed while it was written is written once more;
    one that was written is passed over, by a note of its own.
    """

    is_observed = False  # a format may run its rows as it likes

    def __init__(self, sink: SparkSink, state: UPath) -> None:
        self.sink = sink
        self.name = sink.name
        self._marker = BatchMarker(state, sink.name)

    def prepare(self, session: SparkSession, schema: StructType) -> None:  # noqa: ARG002
        """Check that the columns are there."""
        require_columns(self.name, self.sink.columns, schema)

    def read_schema(self, session: SparkSession) -> StructType | None:  # noqa: ARG002
        """Say that nothing is known of the sink's columns."""
        return None

    def write(self, batch: DataFrame, batch_id: int, query_id: str) -> SinkRecord:
        """Append the rows, unless those of the batch were."""
        done = self._marker.find_done(batch_id, query_id)
        if done:
            return done
        rows = choose_columns(batch, self.sink.columns)
        hidden = read_connection(self.sink.connection) if self.sink.connection else {}
        writer = rows.write.format(self.sink.format).options(**(self.sink.options | hidden))
        try:
            writer.mode("append").save()
        except AnalysisException as error:
            raise SinkError(
                f"The format {self.sink.format} does not take the batch: {first_line(error)}",
                cause=f"Its rows are {rows.schema.simpleString()}.",
                remedy="Cast the columns in the last step, or correct the sink in the spec.",
            ) from error
        self._marker.note_done(batch_id, query_id)
        return SinkRecord(rows=None, version=None)
