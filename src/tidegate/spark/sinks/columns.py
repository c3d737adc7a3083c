"""The columns that a sink takes of its rows."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from tidegate.core.errors import SinkError


def require_columns(sink: str, named: Iterable[str | None], schema: StructType) -> None:
    """Refuse rows that lack columns which the sink names."""
    known = {name.lower() for name in schema.fieldNames()}
    missing = [column for column in named if column and column.lower() not in known]
    if missing:
        raise SinkError(
            f"The sink {sink} takes {', '.join(missing)}, which its rows do not have.",
            remedy=f"Choose out of {', '.join(schema.fieldNames())}.",
        )


def choose_columns(rows: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    """Keep the columns that the sink names; all where it names none."""
    return rows.select(*columns) if columns else rows
