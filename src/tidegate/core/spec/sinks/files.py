"""A folder of files as a sink."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from tidegate.core.spec.base import Column, Location, Options
from tidegate.core.spec.sinks.base import SinkModel, find_twins

METADATA = "_spark_metadata"
"""The folder in which Spark's file sink says which files belong to which batch."""


class WrittenFormat(StrEnum):
    """The file formats that can be written."""

    PARQUET = "parquet"
    JSON = "json"
    CSV = "csv"
    ORC = "orc"


class FilesSink(SinkModel):
    """New files in a folder, listed by batch in Spark's own log beside them."""

    type: Literal["files"]
    path: Location
    format: WrittenFormat
    partition_by: tuple[Column, ...] = ()
    options: Options = Field(default_factory=dict, description="Options of the format.")

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        yield from super().find_conflicts(given)
        yield from find_twins("partition_by", given.get("partition_by"))
