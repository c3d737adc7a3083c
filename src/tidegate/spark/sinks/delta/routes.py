"""Appending to one Delta table for each value of a column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from tidegate.core.errors import SinkError
from tidegate.core.ledger import SinkRecord
from tidegate.core.settings import Settings
from tidegate.core.spec.sinks.delta import DeltaSink, SchemaChange
from tidegate.spark.columns import list_absent, pick_fields, quote
from tidegate.spark.sinks.delta.append import DeltaAppend
from tidegate.spark.sinks.delta.checks import find_lacking, raise_all

_VALUE = re.compile(r"[A-Za-z0-9_-]{1,100}")
_MOST_VALUES = 100
_MOST_TOLD = 5


class DeltaRoutes:
    """Delta tables below a folder, each named by the value that its rows have in a column.

    Each takes its rows by a transaction of its own, so that a batch which is written again goes
    into those tables only that do not hold it. A batch is read once for each of its tables.
    """

    is_observed = False

    def __init__(
        self, sink: DeltaSink, settings: Settings, policy: SchemaChange = SchemaChange.FAIL
    ) -> None:
        self.sink = sink
        self.name = sink.name
        self._settings = settings
        self._policy = policy
        self._column = sink.route_by or ""
        self._each = sink.model_copy(update={"columns": self._leave_out(sink.columns)})
        self._tables: dict[str, DeltaAppend] = {}

    def prepare(self, session: SparkSession, schema: StructType) -> None:  # noqa: ARG002
        """Check, before anything is written, that rows can be told apart and written."""
        raise_all(self.sink.table, list(self._find_mistakes(schema)))

    def read_schema(self, session: SparkSession) -> StructType | None:  # noqa: ARG002
        """Say that each table has columns of its own."""
        return None

    def write(self, batch: DataFrame, batch_id: int, query_id: str) -> SinkRecord:
        """Write a batch, each row to its table, unless that holds it already."""
        chosen = {value: self._select(batch, value) for value in self._list_values(batch)}
        records = [
            self._open(value, rows).write(rows, batch_id, query_id)
            for value, rows in chosen.items()
        ]
        counts = [record.rows for record in records if record.rows is not None]
        return SinkRecord(
            rows=sum(counts) if len(counts) == len(records) else None,
            version=None,
            is_replay=bool(records) and all(record.is_replay for record in records),
        )

    def _find_mistakes(self, schema: StructType) -> Iterator[SinkError]:
        yield from find_lacking(self.sink, {"route_by": "is routed by"}, schema)
        rest = self._leave_out(schema.fieldNames())
        yield from find_lacking(self._each, DeltaAppend.uses, pick_fields(schema, rest))
        if not self._leave_out(self.sink.columns or schema.fieldNames()):
            yield SinkError(
                f"The sink {self.sink.table} has nothing to write but {self._column}.",
                cause="It is routed by that column, which is not written itself.",
                remedy="Give its rows another column.",
            )

    def _leave_out(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(list_absent(names, [self._column]))

    def _list_values(self, batch: DataFrame) -> list[str]:
        """List the values of a batch, all of which must do as the name of a table."""
        column = F.col(quote(self._column)).cast("string")
        found = batch.select(column).distinct().limit(_MOST_VALUES + 1).collect()
        values = sorted(row[0] or "" for row in found)
        unfit = [repr(value) for value in values if not _VALUE.fullmatch(value)]
        if unfit:
            raise SinkError(
                f"The sink {self.sink.table} cannot name tables by {', '.join(unfit[:_MOST_TOLD])}.",
                cause=f"These are values of {self._column}, by which it is routed.",
                remedy="Give it values of letters, digits, _ and -, at most 100 of them.",
            )
        if len(values) > _MOST_VALUES:
            raise SinkError(
                f"A batch has more than {_MOST_VALUES} values of {self._column}, by which the sink "
                f"{self.sink.table} is routed, such as {', '.join(values[:_MOST_TOLD])}.",
                remedy="Route by a column of fewer values, or use partition_by.",
            )
        return values

    def _select(self, batch: DataFrame, value: str) -> DataFrame:
        column = F.col(quote(self._column))
        return batch.where(column.cast("string") == value).drop(column)

    def _open(self, value: str, rows: DataFrame) -> DeltaAppend:
        if value not in self._tables:
            table = DeltaAppend(self._each, self._settings, self._policy, route=value)
            table.prepare(rows.sparkSession, rows.schema)
            self._tables[value] = table
        return self._tables[value]
