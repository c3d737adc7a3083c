"""Where a pipeline reads from. Every source is bounded per batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeGuard

from pydantic import Field, PositiveInt

from tidegate.core.spec.base import Duration, Location, Moment, Options, SpecModel
from tidegate.core.spec.schema import Schema

CORRUPT_RECORD = "_corrupt_record"
"""The column that holds a malformed json or csv record as it was found."""


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


class FilesSource(SpecModel):
    """Files that land in a folder, each read once."""

    type: Literal["files"]
    path: Location
    format: FileFormat
    file_schema: Schema | None = Field(
        default=None,
        alias="schema",
        description="Columns as Spark's DDL; required except for text and binaryFile.",
    )
    glob: str | None = Field(default=None, description="Only file names that match, as '*.json'.")
    recursive: bool = Field(default=False, description="Read nested folders too.")
    max_files_per_trigger: PositiveInt | None = None
    max_bytes_per_trigger: PositiveInt | None = None
    max_file_age: Duration = Field(
        default=timedelta(days=7),
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
        file_format, cleaning = given.get("format"), given.get("clean_source", CleanSource.OFF)
        if ("max_files_per_trigger" in given) == ("max_bytes_per_trigger" in given):
            yield "needs exactly one of max_files_per_trigger and max_bytes_per_trigger"
        if "schema" not in given and file_format in set(FileFormat) - FIXED_SCHEMA:
            yield f"format {file_format} needs a schema, such as 'id long, at timestamp'"
        if "schema" in given and file_format in FIXED_SCHEMA:
            yield f"format {file_format} has a schema of its own, so schema must go"
        if (cleaning == CleanSource.ARCHIVE) != ("archive_path" in given):
            yield "clean_source archive and archive_path go together"
        if _is_inside(given.get("archive_path"), given.get("path")):
            yield "archive_path must not be inside path, or archived files would be read again"
        if "malformed" in given and file_format not in TEXT_RECORDS:
            yield "malformed is only for formats json and csv"
        if "/" in str(given.get("glob", "")):
            yield "glob matches file names, so it has no '/'; recursive reads nested folders"
        options = given.get("options")
        taken = [key for key in options if key.lower() in _TAKEN] if _is_map(options) else []
        if taken:
            yield f"options must not hold {', '.join(sorted(taken))}; the spec has fields for it"


def _is_inside(inner: Any, outer: Any) -> bool:
    return bool(inner) and f"{inner}/".startswith(f"{str(outer).rstrip('/')}/")


def _is_map(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


# Options that the spec has fields for, or that would break the plan's view of the folder.
_TAKEN = frozenset(
    "path schema maxfilespertrigger maxbytespertrigger maxfileage cleansource sourcearchivedir "
    "pathglobfilter recursivefilelookup latestfirst filenameonly mode columnnameofcorruptrecord "
    "basepath modifiedbefore modifiedafter ignoredpathsegmentregex".split()
)


class DeltaSource(SpecModel):
    """The rows that are added to a Delta table, as a stream."""

    type: Literal["delta"]
    table: Location
    starting_version: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="First run only; afterwards the checkpoint decides."
    )
    starting_timestamp: Moment | None = Field(
        default=None, description="First run only; afterwards the checkpoint decides."
    )
    max_files_per_trigger: PositiveInt | None = None
    max_bytes_per_trigger: PositiveInt | None = None
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
        if not {"max_files_per_trigger", "max_bytes_per_trigger"} & given.keys():
            yield "needs max_files_per_trigger or max_bytes_per_trigger"
        if {"starting_version", "starting_timestamp"} <= given.keys():
            yield "takes starting_version or starting_timestamp, not both"
        if given.get("change_data_feed") and given.get("skip_change_commits"):
            yield "change_data_feed reads changes, so skip_change_commits must go"


class RateSource(SpecModel):
    """Made-up rows (timestamp, value), the same number each run; for trying things out."""

    type: Literal["rate"]
    rows_per_batch: PositiveInt


Source = Annotated[FilesSource | DeltaSource | RateSource, Field(discriminator="type")]
