"""Opening a source as a bounded stream."""

from __future__ import annotations

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from tidegate.core.errors import SourceError
from tidegate.core.settings import Settings
from tidegate.core.spec.base import format_duration
from tidegate.core.spec.kafka import KafkaSource
from tidegate.core.spec.pipeline import ONLY_SOURCE
from tidegate.core.spec.source import (
    CORRUPT_RECORD,
    TEXT_RECORDS,
    CleanSource,
    DeltaSource,
    FileFormat,
    FilesSource,
    Malformed,
    RateSource,
    Source,
)
from tidegate.spark.eventtime import apply_watermark
from tidegate.spark.kafka import KafkaReader

_MODES = {
    Malformed.KEEP: "PERMISSIVE",
    Malformed.DROP: "DROPMALFORMED",
    Malformed.FAIL: "FAILFAST",
}
_BINARY_SCHEMA = "path string, modificationTime timestamp, length long, content binary"


def open_stream(
    session: SparkSession,
    name: str,
    source: Source,
    settings: Settings,
    *,
    accepts_loss: bool = False,
) -> DataFrame:
    """Open a source as a streaming DataFrame, bounded per batch."""
    reader = session.readStream
    if name != ONLY_SOURCE:
        reader = reader.name(name)
    rows = _open(reader, source, settings, accepts_loss=accepts_loss)
    return apply_watermark(rows, name, source.watermark) if source.watermark else rows


def _open(
    reader: DataStreamReader, source: Source, settings: Settings, *, accepts_loss: bool
) -> DataFrame:
    try:
        match source:
            case FilesSource():
                return _open_files(reader, source, settings)
            case DeltaSource():
                return _open_delta(reader, source, settings)
            case KafkaSource():
                return KafkaReader(source, settings, accepts_loss).open_stream(reader)
            case RateSource():
                reader = reader.format("rate-micro-batch")
                return reader.option("rowsPerBatch", source.rows_per_batch).load()
    except (AnalysisException, ParseException) as error:
        raise SourceError(
            f"Spark cannot open the {source.type} source: {first_line(error)}",
            remedy="Correct the source in the spec.",
        ) from error


def first_line(error: BaseException) -> str:
    """Take the part of Spark's message that a person needs."""
    lines = (line.strip() for line in str(error).splitlines())
    return next((line for line in lines if line), type(error).__name__)


def _open_files(reader: DataStreamReader, source: FilesSource, settings: Settings) -> DataFrame:
    reader = _set_options(
        reader.format(source.format).options(**source.options),
        maxFilesPerTrigger=source.max_files_per_trigger,
        maxBytesPerTrigger=source.max_bytes_per_trigger,
        maxFileAge=format_duration(source.max_file_age),
        pathGlobFilter=source.glob,
        recursiveFileLookup=str(source.recursive).lower(),
        cleanSource=source.clean_source,
        sourceArchiveDir=(
            settings.locate_url(source.archive_path)
            if source.archive_path and source.clean_source is CleanSource.ARCHIVE
            else None
        ),
    )
    schema = source.file_schema
    if source.format in TEXT_RECORDS:
        reader = reader.option("mode", _MODES[source.malformed])
        if source.malformed is Malformed.KEEP:
            reader = reader.option("columnNameOfCorruptRecord", CORRUPT_RECORD)
            schema = f"{schema}, {CORRUPT_RECORD} string"
    elif source.format is FileFormat.BINARY:
        schema = _BINARY_SCHEMA
    if schema:
        reader = reader.schema(schema)
    rows = reader.load(settings.locate_url(source.path))
    if not source.provenance:
        return rows
    return rows.selectExpr(
        "*", "_metadata.file_path AS _file", "_metadata.file_modification_time AS _file_modified"
    )


def _open_delta(reader: DataStreamReader, source: DeltaSource, settings: Settings) -> DataFrame:
    starting = source.starting_timestamp
    reader = _set_options(
        reader.format("delta"),
        maxFilesPerTrigger=source.max_files_per_trigger,
        maxBytesPerTrigger=source.max_bytes_per_trigger,
        startingVersion=source.starting_version,
        startingTimestamp=starting.isoformat() if starting else None,
        readChangeFeed="true" if source.change_data_feed else None,
        skipChangeCommits="true" if source.skip_change_commits else None,
    )
    return reader.load(settings.locate_url(source.table))


def _set_options(reader: DataStreamReader, **options: str | int | None) -> DataStreamReader:
    for key, value in options.items():
        if value is not None:
            reader = reader.option(key, value)
    return reader
