"""What every sink can do, and which one a spec means."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tidegate.core.ledger import SinkRecord
from tidegate.core.settings import Settings
from tidegate.core.spec.sinks.delta import DeltaMode, DeltaSink, SchemaChange
from tidegate.core.spec.sinks.files import FilesSink
from tidegate.core.spec.sinks.jdbc import JdbcSink
from tidegate.core.spec.sinks.kafka import KafkaSink
from tidegate.core.spec.sinks.python import PythonSink
from tidegate.core.spec.sinks.sink import Sink
from tidegate.core.spec.sinks.spark import SparkSink
from tidegate.spark.sinks.delta import (
    DeltaAppend,
    DeltaHistory,
    DeltaOverwrite,
    DeltaRoutes,
    DeltaUpsert,
)
from tidegate.spark.sinks.files import FilesWriter
from tidegate.spark.sinks.jdbc.writer import JdbcWriter
from tidegate.spark.sinks.kafka import KafkaSend
from tidegate.spark.sinks.python import PythonWriter
from tidegate.spark.sinks.spark import SparkWriter


class SinkWriter(Protocol):
    """A sink that takes each batch exactly once, or says that it cannot."""

    name: str
    is_observed: bool
    """Whether what its rows are observed for is known once they are written."""

    def prepare(self, session: SparkSession, schema: StructType) -> None:
        """Check, before anything is written, that the sink can take the rows."""

    def read_schema(self, session: SparkSession) -> StructType | None:
        """Read the columns that the sink has; None where it has none of its own."""

    def write(self, batch: DataFrame, batch_id: int, query_id: str) -> SinkRecord:
        """Write a batch's rows, already chosen, unless the sink has them; leave out columns."""


def open_sink(sink: Sink, settings: Settings, pipeline: str, policy: SchemaChange) -> SinkWriter:
    """Open the sink that a spec describes."""
    match sink:
        case DeltaSink():
            return _open_delta(sink, settings, policy)
        case KafkaSink():
            return KafkaSend(sink, settings.sink_state_of(pipeline, sink.name))
        case JdbcSink():
            return JdbcWriter(sink)
        case FilesSink():
            return FilesWriter(sink, settings)
        case PythonSink():
            return PythonWriter(sink, settings, pipeline)
        case SparkSink():
            return SparkWriter(sink, settings.sink_state_of(pipeline, sink.name))


def _open_delta(sink: DeltaSink, settings: Settings, policy: SchemaChange) -> SinkWriter:
    if sink.route_by:
        return DeltaRoutes(sink, settings, policy)
    match sink.mode:
        case DeltaMode.APPEND:
            return DeltaAppend(sink, settings, policy)
        case DeltaMode.UPSERT:
            return DeltaUpsert(sink, settings, policy)
        case DeltaMode.SCD2:
            return DeltaHistory(sink, settings, policy)
        case DeltaMode.OVERWRITE:
            return DeltaOverwrite(sink, settings, policy)
