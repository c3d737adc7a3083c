"""What every sink can do, and which one a spec means."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tidegate.core.ledger import SinkRecord
from tidegate.core.settings import Settings
from tidegate.core.spec.sink import DeltaSink, KafkaSink, Sink
from tidegate.spark.sinks.delta import DeltaAppend
from tidegate.spark.sinks.kafka import KafkaSend


class SinkWriter(Protocol):
    """A sink that takes each batch exactly once."""

    name: str
    is_observed: bool
    """Whether what its rows are observed for is known once they are written."""

    def prepare(self, session: SparkSession, schema: StructType) -> None:
        """Check, before anything is written, that the sink can take the rows."""

    def read_schema(self, session: SparkSession) -> StructType | None:
        """Read the columns that the sink has; None where it has none of its own."""

    def write(self, batch: DataFrame, batch_id: int, query_id: str) -> SinkRecord:
        """Write a batch, unless the sink has it already."""


def open_sink(sink: Sink, settings: Settings, pipeline: str, *, evolves: bool) -> SinkWriter:
    """Open the sink that a spec describes."""
    match sink:
        case DeltaSink():
            return DeltaAppend(sink, settings, evolves=evolves)
        case KafkaSink():
            return KafkaSend(sink, settings.sink_state_of(pipeline, sink.name))
