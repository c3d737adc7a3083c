"""Reading a range once more: through the same steps, rules and sinks as a live batch.

Each slice is the only batch of a query of its own, by which sinks know what they have already: as
batches of one query they would have to come in order, since Delta passes over an earlier one. A range
that is replaced goes into a table of its own first, slice by slice, and from there into the sink's by
one commit.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tidegate.core.backfill.book import Backfill, Backfills, SliceResult
from tidegate.core.backfill.holding import tell_held
from tidegate.core.backfill.progress import Progress
from tidegate.core.backfill.range import PLACES, DeltaRange, Range
from tidegate.core.backfill.request import Mode
from tidegate.core.backfill.survey import tell_remembering
from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import BackfillError
from tidegate.core.lease import Lease, LeaseFolder, hold_lease
from tidegate.core.replay import Replays
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.sinks.delta import DeltaSink
from tidegate.core.spec.source import DeltaSource
from tidegate.spark.conflict import insist
from tidegate.spark.failure import describe_failure
from tidegate.spark.files import tell_corrupt
from tidegate.spark.quarantine import Quarantine
from tidegate.spark.query import OpenQuery, Query
from tidegate.spark.ranges import find_rearranged, read_range, spell_where
from tidegate.spark.session import open_session
from tidegate.spark.sinks.delta.append import DeltaAppend
from tidegate.spark.sinks.delta.keyed import KeyedWriter
from tidegate.spark.sinks.delta.writer import DeltaWriter
from tidegate.spark.sinks.jdbc.writer import JdbcWriter
from tidegate.spark.sinks.writer import open_sink

_ONLY_BATCH = 0
_SWAP = "swap"
_MISPLACED = "DELTA_REPLACE_WHERE_MISMATCH"


def run_backfill(
    pipeline: Pipeline, settings: Settings, backfill_id: str, slices: Collection[int] = ()
) -> None:
    """Run the slices that are not done yet, and swap the range once all are; or just some slices.

    One that fails stops no other.
    """
    book = Backfills(pipeline, settings)
    backfill = book.read(backfill_id)
    book.refuse_changed(backfill)
    filling = _Filling(pipeline, settings, book, backfill, open_session(pipeline))
    unknown = [number for number in slices if number not in range(len(backfill.slices))]
    if unknown:
        raise BackfillError(f"it has {len(backfill.slices)} slices, and no {unknown}")
    failures = filling.run_slices(slices or range(len(backfill.slices)))
    if failures:
        raise BackfillError(*failures)
    if backfill.mode is Mode.REPLACE and not slices:
        filling.swap()


@dataclass(frozen=True)
class _Filling:
    pipeline: Pipeline
    settings: Settings
    book: Backfills
    backfill: Backfill
    session: SparkSession

    def run_slices(self, wanted: Collection[int]) -> list[str]:
        """Run what of some slices is left, and tell what failed."""
        done = self.book.read_done(self.backfill.id)
        left = [number for number in wanted if number not in done]
        if not left:
            return []
        query = self._open_query()
        failures = []
        for number in left:
            try:
                with self._hold(str(number)) as lease:
                    self._refuse_replay()
                    if number not in self.book.read_done(self.backfill.id):
                        insist(partial(self._run, query, number, lease))
            except Exception as error:
                part = self.backfill.slices[number].describe()
                failures.append(f"slice {number + 1} ({part}): {describe_failure(error)}")
        return failures

    def _hold(self, what: str) -> AbstractContextManager[Lease]:
        return hold_lease(
            LeaseFolder(self.book.folder_of(self.backfill.id) / "lease" / what),
            f"{self.backfill.id}, {what}",
            seconds=self.settings.lease_seconds,
            tell=self._tell,
        )

    def _refuse_replay(self) -> None:
        """Refuse to judge rows anew that a replay takes up right now."""
        held = Replays(self.pipeline, self.settings).lease.find_held()
        if held:
            raise BackfillError(
                f"{held.holder} takes up right now what was put aside, and rows that both bring would "
                "be there twice; wait until it has ended"
            )

    def _open_query(self) -> OpenQuery:
        pipeline = self._staged if self.backfill.mode is Mode.REPLACE else self.pipeline
        run = Query(pipeline, self.settings, self.backfill.id, accepts_loss=False)
        query = run.open(self.session)
        if query.remembers:
            raise BackfillError(tell_remembering(pipeline.name))
        if self.backfill.mode is not Mode.MERGE:
            self._refuse_unplaced(query.shape.fieldNames())
        if self.backfill.mode is Mode.REPLACE:
            for sink in self.pipeline.delta_sinks:
                self._open_sink(sink).prepare(self.session, query.shape)
        for outlet in query.writer.outlets:
            if isinstance(outlet.writer, KeyedWriter | JdbcWriter):
                outlet.writer.heals = True
        return query

    def _refuse_unplaced(self, columns: Collection[str]) -> None:
        lacking = [name for name in PLACES[self.backfill.range.kind] if name not in columns]
        if lacking:
            raise BackfillError(
                f"the steps of {self.pipeline.name} leave out {', '.join(lacking)}, so that nobody can "
                "tell which rows came from the range; have them keep it, or take mode merge"
            )

    def _open_sink(self, sink: DeltaSink) -> DeltaWriter:
        writer = open_sink(sink, self.settings, self.pipeline.name, self.pipeline.table_policy)
        assert isinstance(writer, DeltaWriter)  # noqa: S101
        return writer

    @property
    def _staged(self) -> Pipeline:
        """The pipeline, its rows going to tables of the backfill's own."""
        folder = self.book.folder_of(self.backfill.id) / "staged"
        sinks = tuple(
            sink.model_copy(update={"table": str(folder / sink.name)})
            for sink in self.pipeline.delta_sinks
        )
        return self.pipeline.model_copy(update={"sinks": sinks})

    def _run(self, query: OpenQuery, number: int, lease: Lease) -> None:
        began = time.monotonic()
        part = self.backfill.slices[number]
        rows = read_range(self.session, self.pipeline, self.settings, part)
        if self.pipeline.puts_records_aside:
            rows = tell_corrupt(rows)
        if self.backfill.mode is Mode.APPEND:
            self._refuse_held(number, part)
            self._claim(query, part)
        writer = replace(
            query.writer,
            prepare=query.finish,
            audits=True,
            check=lease.check,
            quarantine=self._open_aside(number),
        )
        result = writer.write(rows, _ONLY_BATCH, self._name(number))
        done = SliceResult(
            number,
            result.input_rows or 0,
            result.malformed,
            result.passages,
            {name: record.rows for name, record in result.sinks.items()},
            result.quarantined,
            result.failed,
            round(time.monotonic() - began, 3),
        )
        lease.check()
        if self.backfill.mode is not Mode.REPLACE:
            self._publish_aside([number], part, f"{self._name(number)}:aside")
        self.book.record_slice(self.backfill.id, done)
        self._tell_slice(done)

    def _open_aside(self, number: int) -> Quarantine:
        """Open where a slice puts rows aside until the quarantine takes them."""
        table = self.book.folder_of(self.backfill.id) / "staged" / "aside" / str(number)
        staged = self.pipeline.model_copy(update={"quarantine": str(table)})
        return replace(Quarantine.of(staged, self.settings, self.backfill.id), number=number)

    def _publish_aside(self, numbers: Collection[int], part: Range, name: str) -> None:
        """Have the quarantine hold of a range what these slices put aside, and nothing older."""
        aside = (self._open_aside(number).read(self.session) for number in numbers)
        parts = [rows for rows in aside if rows is not None]
        source = self.pipeline.source
        is_told = not isinstance(source, DeltaSource) or source.provenance
        where = self._spell_where(part, prefix="") if is_told else "false"
        quarantine = Quarantine.of(self.pipeline, self.settings, self.backfill.id)
        insist(lambda: quarantine.publish(self.session, parts, where, name))

    def _name(self, number: int) -> str:
        return f"{self.backfill.id}:{number}"

    def _refuse_held(self, number: int, part: Range) -> None:
        """Refuse to add rows that a table has already."""
        for sink in self.pipeline.delta_sinks:
            held = self._read_held(sink, part)
            if held is not None and not held.isEmpty() and not self._has_slice(sink, number):
                raise BackfillError(tell_held(sink.table))

    def _claim(self, query: OpenQuery, part: Range) -> None:
        """Let Delta refuse rows that somebody else brings between the look and the write."""
        where = self._spell_where(part)
        for outlet in query.writer.outlets:
            if isinstance(outlet.writer, DeltaAppend):
                outlet.writer.within = where

    def _read_held(self, sink: DeltaSink, part: Range) -> DataFrame | None:
        """Read the rows of a range that a table has; None where there is no table."""
        if DeltaLog(self.settings.locate(sink.table)).find_version() is None:
            return None
        table = self._open_table(sink)
        self._refuse_rearranged(sink, table)
        return table.where(self._spell_where(part))

    def _refuse_rearranged(self, sink: DeltaSink, table: DataFrame) -> None:
        """Refuse where rows of the range may be known by the file that OPTIMIZE moved them to."""
        source, whole = self.pipeline.source, self.backfill.range
        if not (isinstance(source, DeltaSource) and isinstance(whole, DeltaRange)):
            return
        moved = find_rearranged(self.settings, source, whole.first)
        if moved and not table.where(_take_name(F.col("_file")).isin(list(moved))).isEmpty():
            raise BackfillError(
                f"{sink.table} has rows that were read from files which OPTIMIZE had made of earlier "
                f"ones, so which version they came from cannot be told; begin after version "
                f"{max(moved.values())}"
            )

    def _has_slice(self, sink: DeltaSink, number: int) -> bool:
        log = DeltaLog(self.settings.locate(sink.table))
        app_id = sink.name_writer(self._name(number))
        return _ONLY_BATCH in log.find_batches(app_id, (_ONLY_BATCH,))

    def _open_table(self, sink: DeltaSink) -> DataFrame:
        return self.session.read.format("delta").load(self.settings.locate_url(sink.table))

    def _spell_where(self, part: Range, prefix: str = "_") -> str:
        return spell_where(self.session, self.pipeline, self.settings, part, prefix)

    def swap(self) -> None:
        """Swap the range in each table, by one commit."""
        with self._hold(_SWAP) as lease:
            self._refuse_replay()
            swapped = self.book.read_swaps(self.backfill.id)
            left = [sink for sink in self.pipeline.delta_sinks if sink.name not in swapped]
            if not left:
                return
            where = self._spell_where(self.backfill.range)
            staged = {sink.name: sink for sink in self._staged.delta_sinks}
            for sink in left:
                if DeltaLog(self.settings.locate(sink.table)).find_version() is not None:
                    self._refuse_rearranged(sink, self._open_table(sink))
                lease.check()
                self._swap(sink, self._open_table(staged[sink.name]), where)
                rows = self._open_table(sink).where(where).count()
                if sink == left[-1]:
                    numbers = range(len(self.backfill.slices))
                    self._publish_aside(numbers, self.backfill.range, f"{self.backfill.id}:aside")
                self.book.record_swap(self.backfill.id, sink.name, rows)
                self._tell(f"{sink.table}: the range is swapped, {rows:,} rows")
            self.book.drop_staged(self.backfill.id)

    def _swap(self, sink: DeltaSink, rows: DataFrame, where: str) -> None:
        writer = self._open_sink(sink)
        writer.prepare(self.session, rows.schema)
        if isinstance(writer, DeltaAppend):
            writer.within = where
        try:
            insist(lambda: writer.write(rows, _ONLY_BATCH, self.backfill.id))
        except Exception as error:
            if _MISPLACED not in str(error):
                raise
            raise BackfillError(
                f"the steps gave rows for {sink.table} another place than the one that they came from, "
                f"or none; have them keep {', '.join(PLACES[self.backfill.range.kind])} as they are"
            ) from error

    def _tell_slice(self, done: SliceResult) -> None:
        written = ", ".join(f"{rows} to {name}" for name, rows in done.written.items())
        self._tell(
            f"slice {done.number + 1} of {len(self.backfill.slices)}: {done.rows_read} rows read, "
            f"{written}, {done.quarantined} put aside, {done.seconds} s"
        )
        self._tell(Progress.of(self.book, self.backfill).describe())

    def _tell(self, told: str) -> None:
        print(f"tidegate: {self.pipeline.name} {told}", flush=True)


def _take_name(path: Column) -> Column:
    return F.element_at(F.split(path, "/"), -1)
