"""Options of Spark's readers."""

from __future__ import annotations

from typing import TypeVar

from pyspark.sql import DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader

Reader = TypeVar("Reader", DataStreamReader, DataFrameReader)


def set_options(reader: Reader, **options: str | int | None) -> Reader:
    """Set the options that have a value."""
    for key, value in options.items():
        if value is not None:
            reader = reader.option(key, value)
    return reader
