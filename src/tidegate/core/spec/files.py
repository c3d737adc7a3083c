"""Files as a source: which of a folder, and what their records are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from tidegate.core.spec.base import (
    Count,
    Duration,
    Location,
    Options,
    is_true,
    normalise_location,
)
from tidegate.core.spec.schema import Schema, parse_columns
from tidegate.core.spec.unknown import RESCUED, OnUnknown
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
    on_unknown: OnUnknown | None = Field(
        default=None,
        description=f"For json: rescue keeps fields that the schema does not name in {RESCUED}, "
        "evolve adds columns to the table, drop (the default) forgets them, fail stops the run.",
    )
    provenance: bool = Field(
        default=True, description="Add _file and _file_modified: where a row came from."
    )
    options: Options = Field(default_factory=dict, description="Options of the format.")

    @property
    def keeps_malformed(self) -> bool:
        """Whether a record that does not parse is a row of its own."""
        return self.format in TEXT_RECORDS and self.malformed is Malformed.KEEP

    @property
    def unknown_fields(self) -> OnUnknown:
        """What becomes of fields that the schema does not name, said or not."""
        return self.on_unknown or OnUnknown.DROP

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        said = {key for key, value in given.items() if value is not None}
        file_format = _find_format(given.get("format"))
        yield from _find_misused_unknown(given, file_format)
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
        if given.get("on_unknown") in (OnUnknown.RESCUE, OnUnknown.EVOLVE):
            added.append(RESCUED)
        return [column for column in added if column in named]


def _find_misused_unknown(
    given: Mapping[str, Any], file_format: FileFormat | None
) -> Iterator[str]:
    policy = given.get("on_unknown")
    if policy is not None and file_format and file_format is not FileFormat.JSON:
        yield "on_unknown is only for format json"
    own_ways = ", ".join(_find_own_ways(given.get("options")))
    if own_ways and policy not in (None, OnUnknown.DROP):
        yield f"on_unknown needs a record a line, in UTF-8, so {own_ways} of options must go"


def _find_own_ways(options: Any) -> list[str]:
    """Find options by which only Spark's own reader of JSON can take a file apart."""
    given = options if isinstance(options, Mapping) else {}
    return [
        str(key)
        for key, value in given.items()
        if str(key).lower() in {"charset", "encoding"}
        or (str(key).lower() == "multiline" and is_true(value))
    ]


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
