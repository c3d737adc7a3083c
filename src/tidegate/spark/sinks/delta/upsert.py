"""Keeping the newest row of each key in a Delta table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from tidegate.core.errors import SinkError
from tidegate.spark.columns import list_absent, quote
from tidegate.spark.hold import hold
from tidegate.spark.sinks.delta.keyed import (
    CHANGED,
    DELETED,
    STORED,
    KeyedWriter,
    assign,
    keep_newest,
)
from tidegate.spark.sinks.delta.transaction import Transaction


class DeltaUpsert(KeyedWriter):
    """A Delta table that has one row for each key, the newest.

    A row that comes late never takes the place of a newer one: where its key has a row, MERGE
    compares the two, and where it was deleted, so does what is remembered of the delete.
    """

    def _write(self, batch: DataFrame, transaction: Transaction) -> None:
        newest = keep_newest(self._mark(batch), self.sink.keys, self.sink.sequence)
        is_new = self._version is None
        self._create_clustered(batch.sparkSession, newest.drop(DELETED).schema)
        with hold(newest) if self.sink.delete_when else nullcontext(newest):
            self._remember_deletes(newest, transaction)
            changes = self._leave_out_late(newest)
            if is_new:
                self._save(changes.where(~F.col(DELETED)).drop(DELETED), transaction)
            else:
                self._merge(changes, transaction)

    def _compare(self, rows: StructType, stored: StructType) -> Iterator[SinkError]:
        yield from super()._compare(rows, stored)
        history = self.sink.history_columns
        if not list_absent(history, list_absent(stored.fieldNames(), rows.fieldNames())):
            yield SinkError(
                f"The table {self.table} has {', '.join(history)}, which the rows do not.",
                cause="It keeps every version of a key, as mode scd2 does; upsert would change all.",
                remedy="Name another table in the spec.",
            )

    def _leave_out_late(self, newest: DataFrame) -> DataFrame:
        """Leave out rows of keys that were deleted since."""
        if not self._deleted.exists:
            return newest
        deleted = self._deleted.read(newest.sparkSession)
        is_late = " AND ".join(
            [
                *(f"{CHANGED}.{quote(key)} = {STORED}.{quote(key)}" for key in self.sink.keys),
                f"{self._spell_sequence(CHANGED)} <= {self._spell_sequence(STORED)}",
                f"NOT {DELETED}",
            ]
        )
        return newest.alias(CHANGED).join(deleted.alias(STORED), F.expr(is_late), "left_anti")

    def _merge(self, changes: DataFrame, transaction: Transaction) -> None:
        stored, changed = self._spell_sequence(STORED), self._spell_sequence(CHANGED)
        columns = assign(changes.drop(DELETED).columns)
        is_newer = f"{changed} {'>=' if self.heals else '>'} {stored}"
        merge = (
            self._start_merge(changes, self.sink.keys)
            .whenMatchedDelete(f"{CHANGED}.{DELETED} AND {changed} >= {stored}")
            .whenMatchedUpdate(f"NOT {CHANGED}.{DELETED} AND {is_newer}", columns)
            .whenNotMatchedInsert(f"NOT {CHANGED}.{DELETED}", columns)
        )
        with transaction.set_on(changes.sparkSession):
            merge.execute()

    def _spell_sequence(self, side: str) -> str:
        """Spell a row's sequence as one value, so that its columns count one after the other."""
        fields = (f"'{n}', {side}.{quote(name)}" for n, name in enumerate(self.sink.sequence))
        return f"named_struct({', '.join(fields)})"
