"""Opening a source as a bounded stream."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamReader

from tidegate.core.connection import read_connection
from tidegate.core.errors import SourceError
from tidegate.core.settings import Settings
from tidegate.core.spec.files import PROVENANCE, FilesSource
from tidegate.core.spec.kafka import KafkaSource
from tidegate.core.spec.pipeline import ONLY_SOURCE
from tidegate.core.spec.source import DeltaSource, RateSource, Source, SparkSource
from tidegate.spark.eventtime import apply_watermark
from tidegate.spark.files import FilesReader
from tidegate.spark.kafka import KafkaReader
from tidegate.spark.options import set_options


def open_stream(
    session: SparkSession,
    name: str,
    source: Source,
    settings: Settings,
    checkpoint: str,
    *,
    accepts_loss: bool = False,
) -> DataFrame:
    """Open a source as a streaming DataFrame, bounded per batch."""
    reader = session.readStream
    if name != ONLY_SOURCE:
        reader = reader.name(name)
    if isinstance(source, DeltaSource) and source.schema_tracking:
        reader = reader.option("schemaTrackingLocation", f"{checkpoint}/schema/{name}")
    rows = _open(reader, source, settings, accepts_loss=accepts_loss)
    return apply_watermark(rows, name, source.watermark) if source.watermark else rows


def _open(
    reader: DataStreamReader, source: Source, settings: Settings, *, accepts_loss: bool
) -> DataFrame:
    try:
        match source:
            case FilesSource():
                return FilesReader(source, settings).open_stream(reader)
            case DeltaSource():
                return _open_delta(reader, source, settings)
            case KafkaSource():
                return KafkaReader(source, settings, accepts_loss).open_stream(reader)
            case SparkSource():
                return _open_format(reader, source)
            case RateSource():
                reader = reader.format("rate-micro-batch")
                return reader.option("rowsPerBatch", source.rows_per_batch).load()
    except (AnalysisException, ParseException, Py4JJavaError) as error:
        raise SourceError(
            f"Spark cannot open the {source.type} source: {first_line(_unwrap(error))}",
            remedy="Correct the source in the spec; a format of its own needs its JARs in jars/.",
        ) from error


def _unwrap(error: Exception) -> Any:
    """Take the JVM's own error, which says more than that a call failed."""
    return error.java_exception if isinstance(error, Py4JJavaError) else error


def first_line(error: BaseException) -> str:
    """Take the part of Spark's message that a person needs."""
    lines = (line.strip() for line in str(error).splitlines())
    return next((line for line in lines if line), type(error).__name__)


def _open_delta(reader: DataStreamReader, source: DeltaSource, settings: Settings) -> DataFrame:
    starting = source.starting_timestamp
    reader = set_options(
        reader.format("delta"),
        maxFilesPerTrigger=source.max_files_per_trigger,
        maxBytesPerTrigger=source.max_bytes_per_trigger,
        startingVersion=source.starting_version,
        startingTimestamp=starting.isoformat() if starting else None,
        readChangeFeed="true" if source.change_data_feed else None,
        skipChangeCommits="true" if source.skip_change_commits else None,
    )
    return tell_file(reader.load(settings.locate_url(source.table)), source)


def tell_file(rows: DataFrame, source: DeltaSource) -> DataFrame:
    """Add the file of a Delta table that each row was read from, where that is asked for."""
    # A stream of Delta has no _metadata, which would say the same.
    return rows.withColumn(PROVENANCE[0], F.input_file_name()) if source.provenance else rows


def _open_format(reader: DataStreamReader, source: SparkSource) -> DataFrame:
    hidden = read_connection(source.connection) if source.connection else {}
    reader = reader.format(source.format).options(**source.options).options(**hidden)
    return (reader.schema(source.file_schema) if source.file_schema else reader).load()
