"""Files that land in a folder as columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType, VariantType

from tidegate.core.settings import Settings
from tidegate.core.spec.base import format_duration
from tidegate.core.spec.files import (
    CORRUPT_RECORD,
    PROVENANCE,
    TEXT_RECORDS,
    CleanSource,
    FileFormat,
    FilesSource,
    Malformed,
)
from tidegate.core.spec.kafka import Decoding, ValueFormat
from tidegate.core.spec.unknown import OnUnknown
from tidegate.spark.options import Reader, set_options
from tidegate.spark.values.decoded import MISFIT, PARSED, fail_where
from tidegate.spark.values.decoding import MALFORMED
from tidegate.spark.values.text import decode_text

_MODES = {
    Malformed.KEEP: "PERMISSIVE",
    Malformed.DROP: "DROPMALFORMED",
    Malformed.FAIL: "FAILFAST",
}
_BINARY_SCHEMA = "path string, modificationTime timestamp, length long, content binary"
_METADATA = ("file_path", "file_modification_time")
_FOLDER = "__tidegate_folder"
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_LINE_SEPARATOR = "lineSep"
_NESTED = (ArrayType, BinaryType, MapType, StructType, VariantType)  # no folder is named by one


def tell_corrupt(rows: DataFrame) -> DataFrame:
    """Tell records that did not parse apart from rows, for those who have no column for them."""
    file = PROVENANCE[0]
    record = F.struct(
        F.lit(MISFIT).alias("reason"),
        (F.col(file) if file in rows.columns else F.lit(None).cast("string")).alias("file"),
        F.encode(CORRUPT_RECORD, "UTF-8").alias("value"),
    )
    return rows.withColumn(MALFORMED, F.when(F.col(CORRUPT_RECORD).isNotNull(), record))


@dataclass(frozen=True)
class FilesReader:
    """Reads a landing zone: the columns of its records, and the file that each came from."""

    source: FilesSource
    settings: Settings
    urls: tuple[str, ...] = ()
    """Just these files; all of the landing zone where none are named."""

    def open_stream(self, reader: DataStreamReader) -> DataFrame:
        """Open all files as a stream, bounded per batch."""
        return self._open(self._bound(reader))

    def read(self, session: SparkSession) -> DataFrame:
        """Read files once, as the stream reads them."""
        deep = str(self.source.recursive).lower()
        return self._open(session.read.option("recursiveFileLookup", deep))

    def _open(self, reader: Reader) -> DataFrame:
        if self.source.unknown_fields is not OnUnknown.DROP:
            return self._decode(self._open_lines(reader))
        rows = self._open_records(reader)
        beside = [F.col(f"_metadata.{field}").alias(name) for field, name in self._provenance]
        return rows.select("*", *beside)

    def _bound(self, reader: DataStreamReader) -> DataStreamReader:
        source = self.source
        is_archived = source.archive_path and source.clean_source is CleanSource.ARCHIVE
        return set_options(
            reader,
            maxFilesPerTrigger=source.max_files_per_trigger,
            maxBytesPerTrigger=source.max_bytes_per_trigger,
            maxFileAge=format_duration(source.max_file_age),
            pathGlobFilter=source.glob,
            recursiveFileLookup=str(source.recursive).lower(),
            cleanSource=source.clean_source,
            sourceArchiveDir=(
                self.settings.locate_url(source.archive_path or "") if is_archived else None
            ),
        )

    @property
    def _location(self) -> str:
        return self.settings.locate_url(self.source.path)

    @property
    def _provenance(self) -> list[tuple[str, str]]:
        return list(zip(_METADATA, PROVENANCE, strict=True)) if self.source.provenance else []

    def _load(self, reader: Reader) -> DataFrame:
        if isinstance(reader, DataFrameReader) and self.urls:
            return reader.option("basePath", self._location).load(list(self.urls))
        return reader.load(self._location)

    def _open_records(self, reader: Reader) -> DataFrame:
        """Let Spark's reader of the format take files apart."""
        source = self.source
        reader = reader.format(source.format).options(**source.options)
        schema = source.file_schema
        if source.format in TEXT_RECORDS:
            reader = reader.option("mode", _MODES[source.malformed])
            if source.malformed is Malformed.KEEP:
                reader = reader.option("columnNameOfCorruptRecord", CORRUPT_RECORD)
                schema = f"{schema}, {CORRUPT_RECORD} string"
        elif source.format is FileFormat.BINARY:
            schema = _BINARY_SCHEMA
        return self._load(reader.schema(schema) if schema else reader)

    def _open_lines(self, reader: Reader) -> DataFrame:
        """Read records as they are, one a line: Spark's reader forgets fields it has no name for."""
        separator = self.source.options.get(_LINE_SEPARATOR)
        reader = set_options(reader.format("text"), **{_LINE_SEPARATOR: separator})
        lines = self._load(reader).select("value", "_metadata")
        return lines.where(~F.col("value").rlike(r"^\s*$"))

    def _decode(self, lines: DataFrame) -> DataFrame:
        source = self.source
        decoding = Decoding(
            format=ValueFormat.JSON,
            schema=source.file_schema,
            on_unknown=source.unknown_fields,
            options={k: v for k, v in source.options.items() if k != _LINE_SEPARATOR},
        )
        place = F.concat(F.lit("in "), F.col("_metadata.file_path"))
        decoded = decode_text(self._find_folders(lines), decoding, place)
        records, columns = decoded.records, decoded.columns
        match source.malformed:
            case Malformed.KEEP:
                found = F.when(decoded.reason.isNotNull(), F.col("value"))
                columns = [*columns, found.alias(CORRUPT_RECORD)]
            case Malformed.DROP:
                records = records.where(decoded.reason.isNull())
            case Malformed.FAIL:
                records = fail_where(records, decoded.reason.isNotNull(), decoded.reason, place)
        parsed = records.schema[PARSED].dataType
        beside = [F.col(f"_metadata.{field}").alias(name) for field, name in self._provenance]
        rows = records.select(*columns, *beside, _FOLDER)
        return self._take_folders(rows, parsed).drop(_FOLDER)

    def _find_folders(self, lines: DataFrame) -> DataFrame:
        """Find the folders named key=value that a file is in, below the landing zone."""
        base = re.escape(quote(urlsplit(self._location).path.rstrip("/"), safe="/=:@+,;&$!'()*~"))
        below = F.regexp_extract("_metadata.file_path", f"{base}/(.*)/[^/]*$", 1)
        return lines.withColumn(_FOLDER, F.when(F.contains(below, F.lit("=")), below))

    def _take_folders(self, rows: DataFrame, parsed: DataType) -> DataFrame:
        if self.source.recursive or not isinstance(parsed, StructType):
            return rows  # as Spark has it: then folders have no meaning
        given = {
            field.name: F.when(
                F.col(_FOLDER).rlike(_spell_folder(field.name)),
                _read_folder(field.name).cast(field.dataType),
            ).otherwise(F.col(f"`{field.name}`"))
            for field in parsed.fields
            if field.name in rows.columns and not isinstance(field.dataType, _NESTED)
        }
        return rows.withColumns(given)


def _spell_folder(name: str) -> str:
    return f"(?i)(^|/){re.escape(quote(name))}=([^/]*)"


def _read_folder(name: str) -> Column:
    """Read what a folder's name says: spelled for a path by its writer, and for a URL by Spark."""
    found = _decode(_decode(F.regexp_extract(_FOLDER, _spell_folder(name), 2)))
    return F.nullif(found, F.lit(_NO_VALUE))


def _decode(text: Column) -> Column:
    return F.coalesce(F.try_url_decode(F.replace(text, F.lit("+"), F.lit("%2B"))), text)
