"""Keeping every version of each key in a Delta table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from tidegate.core.errors import SinkError
from tidegate.core.settings import Settings
from tidegate.core.sidetable import ALL_ROWS
from tidegate.core.spec.sinks.delta import DeltaSink, SchemaChange
from tidegate.spark.columns import list_absent, pick_fields, refer, spell_content
from tidegate.spark.hold import hold
from tidegate.spark.sinks.delta.keyed import (
    CHANGED,
    DELETED,
    OWN,
    KeyedWriter,
    assign,
    keep_newest,
)
from tidegate.spark.sinks.delta.sidetable import SideTable
from tidegate.spark.sinks.delta.transaction import Transaction
from tidegate.spark.sinks.delta.versions import IS_VERSION, SINCE, UNTIL, mark_versions

_BEFORE = f"{OWN}before"
_ACTION = f"{OWN}action"
_HEALS = f"{OWN}heals"


class DeltaHistory(KeyedWriter):
    """A Delta table that has a row for each version of each key.

    A history follows from all rows of its key, whatever order they came in. So a batch has the
    histories of its keys made anew, and what is different in them is merged.
    """

    uses = KeyedWriter.uses | {"track": "tracks"}

    def __init__(
        self, sink: DeltaSink, settings: Settings, policy: SchemaChange = SchemaChange.FAIL
    ) -> None:
        super().__init__(sink, settings, policy)
        self._rows = SideTable(settings, sink.table, ALL_ROWS)

    def read_schema(self, session: SparkSession) -> StructType | None:
        """Read the table's columns, without those that the history adds."""
        table = super().read_schema(session)
        return table and pick_fields(table, list_absent(table.fieldNames(), self._added))

    @property
    def _added(self) -> tuple[str, ...]:
        return self.sink.history_columns

    def _write(self, batch: DataFrame, transaction: Transaction) -> None:
        marked = self._cast(self._mark(batch)).withColumn(_BEFORE, F.lit(None).cast("string"))
        is_new = self._version is None
        with hold(keep_newest(marked, self._names, ())) as rows:
            if is_new:
                planned = self._find_changes(rows).drop(_ACTION)
                self._create_clustered(batch.sparkSession, planned.schema)
            self._remember(rows, transaction)
            changes = self._find_changes(rows)
            if is_new:
                self._save(changes.drop(_ACTION), transaction)
            else:
                self._merge(changes, transaction)

    def _cast(self, rows: DataFrame) -> DataFrame:
        """Give rows the types of the table, so that the two can be compared."""
        table = self.read_schema(rows.sparkSession)
        types = {field.name.lower(): field.dataType for field in table.fields} if table else {}
        columns = zip(rows.columns, refer(rows.columns), strict=True)
        return rows.select(
            *(
                column.cast(types[name.lower()]).alias(name) if name.lower() in types else column
                for name, column in columns
            )
        )

    def _remember(self, rows: DataFrame, transaction: Transaction) -> None:
        """Remember what the table will not show."""
        if self.sink.track:
            self._rows.add(rows.drop(_BEFORE), transaction)
        else:
            self._remember_deletes(rows, transaction)

    def _recall(self, session: SparkSession) -> Iterator[DataFrame]:
        """Read all that is known of earlier rows."""
        if self._version is not None:
            table = self.read(session)
            told = table.withColumn(_BEFORE, spell_content(table.columns)).drop(*self._added)
            yield told.withColumn(DELETED, F.lit(False))
        if self._deleted.exists:
            yield self._deleted.read(session).withColumn(DELETED, F.lit(True))
        if self._rows.exists:
            yield self._rows.read(session)

    def _find_changes(self, rows: DataFrame) -> DataFrame:
        """Find what must change for the table to have the histories of the rows' keys."""
        keys = list(self.sink.keys)
        touched = rows.select(*refer(keys)).distinct()
        recalled = (
            each.withColumn(_HEALS, F.lit(False)) for each in self._recall(rows.sparkSession)
        )
        known = [each.join(touched, keys, "left_semi") for each in recalled]
        own = rows.withColumn(_HEALS, F.lit(self.heals))
        # The table comes first, so that its columns are spelled as it has them.
        every = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), [*known, own])
        of_one = Window.partitionBy(*refer(self._names))
        every = every.withColumn(_BEFORE, F.max(_BEFORE).over(of_one))
        # What a backfill brings is right where the table differs; a delete still counts more.
        settled = keep_newest(every, self._names, (DELETED, _HEALS)).drop(_HEALS)
        return self._compare_versions(
            mark_versions(settled, keys, self.sink.sequence, self.sink.track)
        )

    def _compare_versions(self, versions: DataFrame) -> DataFrame:
        since, until, current = self._added
        names = [name for name in versions.columns if not name.startswith(OWN)]
        table = versions.select(
            *refer(names),
            F.col(SINCE).alias(since),
            F.col(UNTIL).alias(until),
            F.col(UNTIL).isNull().alias(current),
            IS_VERSION,
            _BEFORE,
        )
        is_held, is_version = F.col(_BEFORE).isNotNull(), F.col(IS_VERSION)
        is_other = F.col(_BEFORE) != spell_content([*names, *self._added])
        action = (
            F.when(is_version & ~is_held, "insert")
            .when(is_version & is_other, "update")
            .when(~is_version & is_held, "delete")
        )
        changes = table.withColumn(_ACTION, action).where(F.col(_ACTION).isNotNull())
        return changes.drop(IS_VERSION, _BEFORE)

    def _merge(self, changes: DataFrame, transaction: Transaction) -> None:
        columns = assign(changes.drop(_ACTION).columns)
        merge = (
            self._start_merge(changes, self._names)
            .whenMatchedDelete(f"{CHANGED}.{_ACTION} = 'delete'")
            .whenMatchedUpdate(f"{CHANGED}.{_ACTION} = 'update'", columns)
            .whenNotMatchedInsert(f"{CHANGED}.{_ACTION} = 'insert'", columns)
        )
        with transaction.set_on(changes.sparkSession):
            merge.execute()

    def _find_mistakes(self, session: SparkSession, schema: StructType) -> Iterator[SinkError]:
        yield from super()._find_mistakes(session, schema)
        written = self.sink.columns or schema.fieldNames()
        clashing = pick_fields(schema, list_absent(written, list_absent(written, self._added)))
        if clashing.fields:
            yield SinkError(
                f"The rows of the sink {self.table} have {', '.join(clashing.fieldNames())}, which "
                "their history is to add.",
                remedy="Rename it in the last step, or have the history's columns named otherwise "
                "by valid_from, valid_to and current.",
            )
        yield from self._find_change_of_track(session)

    def _find_change_of_track(self, session: SparkSession) -> Iterator[SinkError]:
        """Find out whether what was remembered so far is what must be remembered."""
        if self._version is None or bool(self.sink.track) == self._rows.exists:
            return
        if self.sink.track and self.read(session).isEmpty():
            return  # created, and nothing written yet
        was, is_now = ("without", "with") if self.sink.track else ("with", "without")
        yield SinkError(
            f"The history {self.table} was begun {was} track, and cannot go on {is_now} it.",
            cause="With track, all rows are remembered; without it, only deletes are.",
            remedy="Name another table in the spec.",
        )
