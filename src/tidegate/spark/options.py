"""Options of Spark's readers."""

from __future__ import annotations

from pyspark.sql.streaming.readwriter import DataStreamReader


def set_options(reader: DataStreamReader, **options: str | int | None) -> DataStreamReader:
    """Set the options that have a value."""
    for key, value in options.items():
        if value is not None:
            reader = reader.option(key, value)
    return reader
