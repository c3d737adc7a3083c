"""Records with their values parsed, and how to stop at one that is wrong."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

PARSED = "__tidegate_parsed"
"""The column of what a value was parsed to."""

MISFIT = "the value does not fit the schema"
NO_TEXT = "the value is not UTF-8 text"


@dataclass(frozen=True)
class Decoded:
    """Records with their values parsed, as far as they could be."""

    records: DataFrame
    columns: list[Column]
    reason: Column
    """Why a value could not be parsed; null where it could."""


def tell_place() -> Column:
    """Say where a record of Kafka's is."""
    return F.concat(F.concat_ws("-", "topic", "partition"), F.lit(" at offset "), F.col("offset"))


def fail_where(
    records: DataFrame, condition: Column, reason: Column, place: Column | None = None
) -> DataFrame:
    """Stop the run at a record, naming its place and the reason."""
    where = tell_place() if place is None else place
    told = F.concat(F.lit("tidegate: record "), where, F.lit(": "), reason)
    return records.where(F.when(condition, F.raise_error(told)).isNull())
