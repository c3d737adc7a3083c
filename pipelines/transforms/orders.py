"""Steps for orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tidegate.spark.transforms import TransformContext


def deduplicate(orders: DataFrame, _context: TransformContext) -> DataFrame:
    """Keep each order once, even if it lands again days later.

    Spark holds the ids it has seen for as long as the watermark says, so that the state stays
    bounded; an order later than that is dropped.
    """
    return orders.withWatermark("event_time", "30 days").dropDuplicatesWithinWatermark(["order_id"])
