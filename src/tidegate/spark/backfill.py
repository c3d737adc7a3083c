"""Reading a range once more: through the same steps, rules and sinks as a live batch.

Each slice is the only batch of a query of its own, by which sinks know what they have already: as
batches of one query they would have to come in order, since Delta passes over an earlier one. A range that is replaced goes into a table of its own first, slice by slice, and from there
into the sink's by one commit.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tidegate.core.backfill.book import Backfill, Backfills, SliceResult
from tidegate.core.backfill.range import DeltaRange, Range
from tidegate.core.backfill.request import Mode
from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import BackfillError
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.sinks.delta import DeltaSink
from tidegate.spark.batch import BatchWriter
from tidegate.spark.failure import describe_failure
from tidegate.spark.files import tell_corrupt
from tidegate.spark.query import OpenQuery, Query
from tidegate.spark.ranges import read_range, spell_where
from tidegate.spark.session import open_session
from tidegate.spark.sinks.delta.transaction import Transaction

_ONLY_BATCH = 0
_SWAP_TRIES = 5
_CONFLICT = "CONCURRENT"


def run_backfill(pipeline: Pipeline, settings: Settings, backfill_id: str) -> None:
    """Run the slices that are not done yet; one that fails stops no other."""
    book = Backfills(pipeline, settings)
    backfill = book.read(backfill_id)
    session = open_session(pipeline)
    staged = _stage(pipeline, book, backfill) if backfill.mode is Mode.REPLACE else pipeline
    query = Query(staged, settings, backfill.id, accepts_loss=False).open(session)
    if query.remembers:
        raise BackfillError(
            f"the steps of {pipeline.name} remember rows, and of a range alone they would give other "
            "results; give the pipeline a new name and a new table, and read the source anew"
        )
    filling = _Filling(pipeline, settings, book, backfill, session, query)
    failures = filling.run_slices()
    if failures:
        raise BackfillError(*failures)
    if backfill.mode is Mode.REPLACE:
        filling.swap(staged)


def _stage(pipeline: Pipeline, book: Backfills, backfill: Backfill) -> Pipeline:
    """Have the rows go to tables of the backfill's own."""
    folder = book.folder_of(backfill.id) / "staged"
    sinks = tuple(
        sink.model_copy(update={"table": str(folder / sink.name)})
        for sink in pipeline.sinks
        if isinstance(sink, DeltaSink)
    )
    return pipeline.model_copy(update={"sinks": sinks})


@dataclass(frozen=True)
class _Filling:
    pipeline: Pipeline
    settings: Settings
    book: Backfills
    backfill: Backfill
    session: SparkSession
    query: OpenQuery

    def run_slices(self) -> list[str]:
        """Run what is left, and tell what failed."""
        done = self.book.read_done(self.backfill.id)
        failures = []
        for number, part in enumerate(self.backfill.slices):
            if number in done:
                continue
            try:
                result = self._run(number, part)
            except Exception as error:
                failures.append(f"slice {number} ({part.describe()}): {describe_failure(error)}")
                continue
            self.book.record_slice(self.backfill.id, result)
            self._tell(result)
        return failures

    def _run(self, number: int, part: Range) -> SliceResult:
        began = time.monotonic()
        rows = read_range(self.session, self.pipeline, self.settings, part)
        if self.pipeline.puts_records_aside:
            rows = tell_corrupt(rows)
        if self.backfill.mode is Mode.APPEND:
            self._refuse_held(number, part)
        result = self._writer.write(rows, _ONLY_BATCH, self._name(number))
        return SliceResult(
            number,
            result.input_rows,
            {name: record.rows for name, record in result.sinks.items()},
            result.quarantined,
            result.failed,
            round(time.monotonic() - began, 3),
        )

    def _name(self, number: int) -> str:
        return f"{self.backfill.id}:{number}"

    @property
    def _writer(self) -> BatchWriter:
        return replace(self.query.writer, prepare=self.query.finish)

    def _refuse_held(self, number: int, part: Range) -> None:
        """Refuse to add rows that a table has already."""
        for sink in self.pipeline.delta_sinks:
            held = self._read_held(sink, part)
            if held is not None and not held.isEmpty() and not self._has_slice(sink, number):
                raise BackfillError(
                    f"the table {sink.table} has rows of it already; take mode replace"
                )

    def _read_held(self, sink: DeltaSink, part: Range) -> DataFrame | None:
        if DeltaLog(self.settings.locate(sink.table)).find_version() is None:
            return None
        table = self.session.read.format("delta").load(self.settings.locate_url(sink.table))
        needed = {"_file"} if part.kind == "files" else {"_topic", "_partition", "_offset"}
        if isinstance(part, DeltaRange) or not needed <= set(table.columns):
            raise BackfillError(
                f"whether the table {sink.table} has rows of it cannot be told, since they do not say "
                "where they came from; take another mode"
            )
        return table.where(spell_where(self.session, part))

    def _has_slice(self, sink: DeltaSink, number: int) -> bool:
        log = DeltaLog(self.settings.locate(sink.table))
        app_id = sink.name_writer(self._name(number))
        return _ONLY_BATCH in log.find_batches(app_id, (_ONLY_BATCH,))

    def swap(self, staged: Pipeline) -> None:
        """Swap the range in each table, by one commit."""
        where = spell_where(self.session, self.backfill.range)
        for sink, source in zip(self.pipeline.delta_sinks, staged.delta_sinks, strict=True):
            rows = self.session.read.format("delta").load(self.settings.locate_url(source.table))
            self._swap(sink, rows, where)
            print(f"tidegate: {self.pipeline.name} {sink.table}: the range is swapped", flush=True)

    def _swap(self, sink: DeltaSink, rows: DataFrame, where: str) -> None:
        transaction = Transaction(sink.name_writer(self.backfill.id), _ONLY_BATCH)
        for tries in range(1, _SWAP_TRIES + 1):
            writer = rows.write.format("delta").mode("overwrite").option("replaceWhere", where)
            try:
                transaction.mark(writer).save(self.settings.locate_url(sink.table))
            except PySparkException as error:
                # A live run has written meanwhile: what it left is looked at once more.
                if _CONFLICT not in str(error) or tries == _SWAP_TRIES:
                    raise
            else:
                return

    def _tell(self, result: SliceResult) -> None:
        written = ", ".join(f"{rows} to {name}" for name, rows in result.written.items())
        print(
            f"tidegate: {self.pipeline.name} slice {result.number + 1} of "
            f"{len(self.backfill.slices)}: {result.rows_read} rows read, {written}, "
            f"{result.quarantined} put aside, {result.seconds} s",
            flush=True,
        )
