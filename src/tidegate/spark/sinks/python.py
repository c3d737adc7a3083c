"""Handing batches to a Python function, each at least once."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tidegate.core.errors import SinkError
from tidegate.core.ledger import SinkRecord
from tidegate.core.settings import Settings
from tidegate.core.spec.sinks.python import PythonSink
from tidegate.spark.columns import choose_columns
from tidegate.spark.functions import load_shipped_function
from tidegate.spark.sinks.columns import require_columns
from tidegate.spark.sinks.marker import BatchMarker
from tidegate.spark.sources import first_line


@dataclass(frozen=True)
class Batch:
    """What a function is told of the batch beside its rows."""

    id: int
    query_id: str
    pipeline: str
    is_replay: bool
    """The function was called for this batch before, and may have done all, some or none of it."""

    @property
    def key(self) -> str:
        """A name that no other batch has: for the other side to know a batch again by."""
        return f"{self.query_id}:{self.id}"


class PythonWriter:
    """A function that a query hands its batches to."""

    is_observed = False  # what it does with the rows is its own affair

    def __init__(self, sink: PythonSink, settings: Settings, pipeline: str) -> None:
        self.sink = sink
        self.name = sink.name
        self._pipeline = pipeline
        self._function = load_shipped_function(sink.function, settings.pipelines)
        self._marker = BatchMarker(settings.sink_state_of(pipeline, sink.name), sink.name)

    def prepare(self, session: SparkSession, schema: StructType) -> None:  # noqa: ARG002
        """Check that the columns are there."""
        require_columns(self.name, self.sink.columns, schema)

    def read_schema(self, session: SparkSession) -> StructType | None:  # noqa: ARG002
        """Say that a function has no columns of its own."""
        return None

    def write(self, batch: DataFrame, batch_id: int, query_id: str) -> SinkRecord:
        """Call the function, unless it returned for this batch before; a number is its rows."""
        done = self._marker.find_done(batch_id, query_id)
        if done:
            return done
        is_replay = self._marker.find(batch_id, query_id) is not None
        self._marker.note(batch_id, query_id)
        rows = choose_columns(batch, self.sink.columns)
        try:
            told = self._function(rows, Batch(batch_id, query_id, self._pipeline, is_replay))
        except Exception as error:
            raise SinkError(
                f"The sink {self.name}, {self.sink.function}, failed: {type(error).__name__}: "
                f"{first_line(error)}",
                remedy="Correct the function; the next run calls it again for this batch.",
            ) from error
        is_count = isinstance(told, int) and not isinstance(told, bool)
        rows_told = told if is_count else None
        self._marker.note_done(batch_id, query_id, rows_told)
        return SinkRecord(rows=rows_told, version=None)
