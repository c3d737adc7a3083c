"""The versions of a key, as they follow from all its rows."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from tidegate.spark.columns import quote, refer
from tidegate.spark.sinks.delta.keyed import DELETED, OWN

SINCE = f"{OWN}since"
"""When a version begins to hold."""

UNTIL = f"{OWN}until"
"""When it ceases to; null where it never does."""

IS_VERSION = f"{OWN}is_version"
"""Whether a row is the newest of a version, and so stands for it."""

_STARTS = f"{OWN}starts"


def mark_versions(
    rows: DataFrame, keys: Sequence[str], sequence: Sequence[str], track: Sequence[str]
) -> DataFrame:
    """Say of each row, of which no two have the same key and sequence, whether it is a version.

    Rows that follow each other by sequence and are the same in what is tracked are one version, the
    newest of them; a delete ends one and is none. Where nothing is tracked, each row is one.
    """
    by_sequence = Window.partitionBy(*refer(keys)).orderBy(*refer(sequence))
    so_far = by_sequence.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    at = F.col(quote(sequence[0]))
    tracked = F.struct(*refer(track or sequence), F.col(DELETED))
    rows = rows.withColumn(_STARTS, ~tracked.eqNullSafe(F.lag(tracked).over(by_sequence)))
    is_last = F.coalesce(F.lead(_STARTS).over(by_sequence), F.lit(True))
    marks = {
        SINCE: F.last(F.when(F.col(_STARTS), at), ignorenulls=True).over(so_far),
        UNTIL: F.lead(at).over(by_sequence),
        IS_VERSION: is_last & ~F.col(DELETED),
    }
    return rows.withColumns(marks).drop(_STARTS)
