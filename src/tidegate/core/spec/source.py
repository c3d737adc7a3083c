"""Where a pipeline reads from. Every source is bounded per batch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from tidegate.core.spec.base import (
    Count,
    Duration,
    Location,
    Moment,
    Options,
    is_true,
    normalise_location,
    refuse_truth,
)
from tidegate.core.spec.kafka import KafkaSource
from tidegate.core.spec.schema import Schema, parse_columns
from tidegate.core.spec.watermark import TimedSource

CORRUPT_RECORD = "_corrupt_record"
"""The column that holds a malformed json or csv record as it was found."""

PROVENANCE = ("_file", "_file_modified")
"""The columns that say where a row came from."""


_GLOB = re.compile(r"([^\\\[\]{}]|\[[\^!]?[\w.-]+\]|\{[^\\\[\]{}]*\})*")


def _check_glob(glob: str) -> str:
    if "/" in glob:
        raise ValueError("must match file names, so it has no '/'; recursive reads nested folders")
    if not _GLOB.fullmatch(glob):
        raise ValueError("takes * ? [abc] [^abc] and {a,b}, each bracket closed, and no backslash")
    for start, end in re.findall(r"\[[^]]*?(\w)-(\w)[^]]*\]", glob):
        if start > end:
            raise ValueError(f"has the range {start}-{end}, which goes backwards")
    return glob


class FileFormat(StrEnum):
    """The file formats that can be streamed."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    ORC = "orc"
    AVRO = "avro"
    TEXT = "text"
    BINARY = "binaryFile"


FIXED_SCHEMA = frozenset({FileFormat.TEXT, FileFormat.BINARY})
TEXT_RECORDS = frozenset({FileFormat.JSON, FileFormat.CSV})


class CleanSource(StrEnum):
    """What becomes of a file once its batch is committed."""

    OFF = "off"
    ARCHIVE = "archive"
    DELETE = "delete"


class Malformed(StrEnum):
    """What becomes of a json or csv record that does not parse."""

    KEEP = "keep"
    DROP = "drop"
    FAIL = "fail"


class FilesSource(TimedSource):
    """Files that land in a folder, each read once."""

    type: Literal["files"]
    path: Location
    format: FileFormat
    file_schema: Schema | None = Field(
        default=None,
        alias="schema",
        description="Columns as Spark's DDL; required except for text and binaryFile.",
    )
    glob: Annotated[str, AfterValidator(_check_glob)] | None = Field(
        default=None, description="Only file names that match, as '*.json'."
    )
    recursive: bool = Field(default=False, description="Read nested folders too.")
    max_files_per_trigger: Count | None = None
    max_bytes_per_trigger: Count | None = None
    max_file_age: Duration = Field(
        default=timedelta(days=7),
        json_schema_extra={"default": "7d"},
        description="A file older than the newest one read by more than this is never read.",
    )
    clean_source: CleanSource = CleanSource.OFF
    archive_path: Location | None = None
    malformed: Malformed = Field(
        default=Malformed.KEEP,
        description=f"keep puts a malformed json or csv record into {CORRUPT_RECORD}.",
    )
    provenance: bool = Field(
        default=True, description="Add _file and _file_modified: where a row came from."
    )
    options: Options = Field(default_factory=dict, description="Options of the format.")

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        said = {key for key, value in given.items() if value is not None}
        file_format = _find_format(given.get("format"))
        if ("max_files_per_trigger" in said) == ("max_bytes_per_trigger" in said):
            yield "needs exactly one of max_files_per_trigger and max_bytes_per_trigger"
        if file_format and "schema" not in said and file_format not in FIXED_SCHEMA:
            yield f"format {file_format} needs a schema, such as 'id long, at timestamp'"
        if "schema" in said and file_format in FIXED_SCHEMA:
            yield f"format {file_format} has a schema of its own, so schema must go"
        if (given.get("clean_source") == CleanSource.ARCHIVE) != ("archive_path" in said):
            yield "clean_source archive and archive_path go together"
        if _is_inside(given.get("archive_path"), given.get("path")):
            yield "archive_path must not be inside path, or archived files would be read again"
        if "malformed" in said and file_format and file_format not in TEXT_RECORDS:
            yield "malformed is only for formats json and csv"
        clashing = cls._list_clashing_columns(given, file_format)
        if clashing:
            yield f"schema must not name {', '.join(clashing)}: tidegate adds it"
        options = given.get("options")
        keys = map(str, options) if isinstance(options, Mapping) else ()
        taken = sorted(key for key in keys if key.lower() in _TAKEN)
        if taken:
            yield f"options must not hold {', '.join(taken)}; the spec has fields for it"

    @staticmethod
    def _list_clashing_columns(
        given: Mapping[str, Any], file_format: FileFormat | None
    ) -> list[str]:
        try:
            named = {column.lower() for column in parse_columns(str(given.get("schema")))}
        except ValueError:
            return []
        added = list(PROVENANCE) if is_true(given.get("provenance", True)) else []
        if file_format in TEXT_RECORDS and given.get("malformed", Malformed.KEEP) == Malformed.KEEP:
            added.append(CORRUPT_RECORD)
        return [column for column in added if column in named]


def _find_format(value: Any) -> FileFormat | None:
    return next((known for known in FileFormat if known == value), None)


def _is_inside(inner: Any, outer: Any) -> bool:
    if not isinstance(inner, str) or not isinstance(outer, str):
        return False
    return f"{normalise_location(inner)}/".startswith(f"{normalise_location(outer)}/")


# Options that the spec has fields for, or that would break the plan's view of the folder.
_TAKEN = frozenset(
    "path schema maxfilespertrigger maxbytespertrigger maxfileage cleansource sourcearchivedir "
    "pathglobfilter recursivefilelookup latestfirst filenameonly mode columnnameofcorruptrecord "
    "basepath modifiedbefore modifiedafter ignoredpathsegmentregex".split()
)


class DeltaSource(TimedSource):
    """The rows that are added to a Delta table, as a stream."""

    type: Literal["delta"]
    table: Location
    starting_version: Annotated[int, Field(ge=0), BeforeValidator(refuse_truth)] | None = Field(
        default=None, description="First run only; afterwards the checkpoint decides."
    )
    starting_timestamp: Moment | None = Field(
        default=None, description="First run only; afterwards the checkpoint decides."
    )
    max_files_per_trigger: Count | None = None
    max_bytes_per_trigger: Count | None = None
    change_data_feed: bool = Field(
        default=False, description="Read changes, with _change_type and _commit_version."
    )
    skip_change_commits: bool = Field(
        default=False,
        description="Pass over commits that change or delete rows, their inserts included.",
    )

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        said = {key for key, value in given.items() if value is not None}
        if not {"max_files_per_trigger", "max_bytes_per_trigger"} & said:
            yield "needs max_files_per_trigger or max_bytes_per_trigger"
        if {"starting_version", "starting_timestamp"} <= said:
            yield "takes starting_version or starting_timestamp, not both"
        if is_true(given.get("change_data_feed")) and is_true(given.get("skip_change_commits")):
            yield "change_data_feed reads changes, so skip_change_commits must go"


class RateSource(TimedSource):
    """Made-up rows (timestamp, value), the same number each run; for trying things out."""

    type: Literal["rate"]
    rows_per_batch: Count


Source = Annotated[
    FilesSource | DeltaSource | KafkaSource | RateSource, Field(discriminator="type")
]
