"""The time of events: how late rows may come, and how late they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import TimestampNTZType, TimestampType

from tidegate.core.errors import SourceError
from tidegate.core.lateness import SHARES, EventTimes
from tidegate.core.spec.watermark import Watermark

_OBSERVED = "tidegate_event_time_"

_ACCURACY = 1000


def apply_watermark(rows: DataFrame, source: str, watermark: Watermark) -> DataFrame:
    """Let rows come late by as much as a spec says, and observe how late they come."""
    column = watermark.column
    kinds = {field.name.lower(): field.dataType for field in rows.schema.fields}
    kind = kinds.get(column.lower())
    if not isinstance(kind, TimestampType | TimestampNTZType):
        fact = "is not there" if kind is None else f"is {kind.simpleString()}"
        raise SourceError(
            f"The watermark's column {column} {fact}.",
            cause=f"The source has {', '.join(rows.columns)}.",
            remedy="Name a timestamp of the source, or call withWatermark in a Python step.",
        )
    delay = f"{int(watermark.delay.total_seconds())} seconds"
    at = F.unix_millis(F.col(column).cast("timestamp"))
    shares = F.array(*(F.lit(1 - share) for share in SHARES))
    observed = rows.observe(
        f"{_OBSERVED}{source}",
        F.count(at).alias("rows"),
        F.max(at).alias("newest_ms"),
        F.min(at).alias("oldest_ms"),
        F.percentile_approx(at, shares, F.lit(_ACCURACY)).alias("shares_ms"),
    )
    return observed.withWatermark(column, delay)


def read_event_times(observed: Mapping[str, Any]) -> dict[str, EventTimes]:
    """Read what Spark reports of event times, by source."""
    return {
        name.removeprefix(_OBSERVED): EventTimes(**found)
        for name, found in observed.items()
        if name.startswith(_OBSERVED) and found.get("rows")
    }
