"""What the modes have in common that know rows by a key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from tidegate.core.errors import SinkError
from tidegate.core.settings import Settings
from tidegate.core.sidetable import DELETED_ROWS
from tidegate.core.spec.sinks.delta import DeltaSink, SchemaChange
from tidegate.spark.columns import list_absent, quote, refer, spell_content
from tidegate.spark.sinks.delta.checks import find_bad_condition, find_incomparable
from tidegate.spark.sinks.delta.sidetable import SideTable
from tidegate.spark.sinks.delta.transaction import Transaction
from tidegate.spark.sinks.delta.writer import DeltaWriter

OWN = "__tidegate_"
"""How columns begin that are not written."""

DELETED = f"{OWN}deleted"
"""Whether a row says that its key is gone."""

STORED, CHANGED = "stored", "changed"
"""What MERGE calls its two sides."""

_RANK = f"{OWN}rank"


class KeyedWriter(DeltaWriter):
    """A Delta table that knows rows by a key, and the newer of two by a sequence."""

    is_observed = False  # MERGE reads its rows as often as it likes
    uses = DeltaWriter.uses | {"keys": "knows rows by", "sequence": "orders rows by"}
    heals = False
    """Whether a row takes the place of one that is just as new: by a backfill, of its own."""

    def __init__(
        self, sink: DeltaSink, settings: Settings, policy: SchemaChange = SchemaChange.FAIL
    ) -> None:
        super().__init__(sink, settings, policy)
        self._names = (*sink.keys, *sink.sequence)
        self._deleted = SideTable(settings, sink.table, DELETED_ROWS)

    def _find_mistakes(self, session: SparkSession, schema: StructType) -> Iterator[SinkError]:
        yield from super()._find_mistakes(session, schema)
        yield from find_incomparable(self.sink, (*self._names, *self.sink.track), schema)
        yield from find_bad_condition(self.sink, session, schema)
        if self._deleted.exists:
            yield from self._compare_deletes(self._deleted.read(session).columns)

    def _compare_deletes(self, remembered: Sequence[str]) -> Iterator[SinkError]:
        if list_absent(self._names, remembered) or list_absent(remembered, self._names):
            yield SinkError(
                f"The sink {self.table} knows and orders rows by {', '.join(self._names)}, and "
                f"remembers deletes by {', '.join(remembered)}.",
                cause="Its keys or its sequence were changed, so that rows which were deleted "
                "could come back.",
                remedy="Change them back, or name another table in the spec.",
            )

    def _compare(self, rows: StructType, stored: StructType) -> Iterator[SinkError]:
        absent = list_absent((*self._names, *self._added), stored.fieldNames())
        if not absent:
            yield from super()._compare(rows, stored)
            return
        yield SinkError(
            f"The table {self.table} has no {', '.join(absent)}, which mode {self.sink.mode} needs.",
            cause=f"It was made by another spec or mode; it has {', '.join(stored.fieldNames())}.",
            remedy="Name another table in the spec.",
        )

    def _mark(self, batch: DataFrame) -> DataFrame:
        """Take the columns that are written, and whether each row is a delete."""
        says = F.expr(self.sink.delete_when) if self.sink.delete_when else F.lit(False)
        columns = refer(self.sink.columns or batch.columns)
        return batch.select(*columns, F.coalesce(says, F.lit(False)).alias(DELETED))

    def _remember_deletes(self, rows: DataFrame, transaction: Transaction) -> None:
        deleted = rows.where(DELETED).select(*refer(self._names))
        if self.sink.delete_when and not deleted.isEmpty():
            self._deleted.add(deleted, transaction)

    def _start_merge(self, changes: DataFrame, by: Iterable[str]) -> Any:
        on = " AND ".join(f"{STORED}.{quote(name)} = {CHANGED}.{quote(name)}" for name in by)
        table = DeltaTable.forPath(changes.sparkSession, self.location).alias(STORED)
        merge = table.merge(changes.alias(CHANGED), on)
        return merge.withSchemaEvolution() if self._adds_columns else merge


def keep_newest(rows: DataFrame, by: Iterable[str], sequence: Iterable[str]) -> DataFrame:
    """Keep one row of each key: the newest, of equally new ones a delete, else by content.

    So it is always the same one, in whatever order the rows come.
    """
    content = spell_content(name for name in rows.columns if not name.startswith(OWN))
    order = [column.desc() for column in (*refer(sequence), F.col(DELETED), content)]
    rank = F.row_number().over(Window.partitionBy(*refer(by)).orderBy(*order))
    return rows.withColumn(_RANK, rank).where(F.col(_RANK) == 1).drop(_RANK)


def assign(names: Iterable[str]) -> dict[str, str]:
    """Have MERGE take columns over."""
    return {quote(name): f"{CHANGED}.{quote(name)}" for name in names}
