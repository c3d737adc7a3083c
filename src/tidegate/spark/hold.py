"""Rows that are made once although they are used more than once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame


@contextmanager
def hold(rows: DataFrame) -> Iterator[DataFrame]:
    """Keep rows as long as they are needed; those that somebody holds already stay his."""
    level = rows.storageLevel
    is_held = level.useMemory or level.useDisk
    if not is_held:
        rows.persist()
    try:
        yield rows
    finally:
        if not is_held:
            rows.unpersist()
