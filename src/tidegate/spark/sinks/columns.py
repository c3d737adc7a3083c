"""The columns that a sink names, and that its rows must have."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.types import StructType

from tidegate.core.errors import SinkError
from tidegate.spark.columns import list_absent


def require_columns(sink: str, named: Iterable[str | None], schema: StructType) -> None:
    """Refuse rows that lack columns which the sink names."""
    missing = list_absent(filter(None, named), schema.fieldNames())
    if missing:
        raise SinkError(
            f"The sink {sink} takes {', '.join(missing)}, which its rows do not have.",
            remedy=f"Choose out of {', '.join(schema.fieldNames())}.",
        )
