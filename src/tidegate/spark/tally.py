"""Counts that are made while rows are written."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812


class Tally:
    """Rows that are counted on their way, without a pass of their own."""

    def __init__(self, rows: DataFrame, counted: Mapping[str, Column]) -> None:
        self._observation = Observation()
        self._counted = counted
        self._was_read = False
        # Spark takes only plain aggregates, and the sum of no rows at all is null.
        columns = [F.count(F.when(which, 1)).alias(name) for name, which in counted.items()]
        self.rows = rows.observe(self._observation, *columns) if columns else rows

    def read(self, *, were_written: bool) -> dict[str, int]:
        """Read the counts; rows that nobody has written are passed over once for them."""
        if not self._counted:
            return {}
        if not (were_written or self._was_read):
            self.rows.write.format("noop").mode("overwrite").save()
        self._was_read = True
        return {name: int(count) for name, count in self._observation.get.items()}
