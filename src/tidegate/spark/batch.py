"""What is done with one batch: steps, rules, sinks, quarantine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from tidegate.core.ledger import SinkRecord
from tidegate.spark.gate import Gate
from tidegate.spark.hold import hold
from tidegate.spark.moment import pin_time
from tidegate.spark.quarantine import Quarantine, shape_failed, shape_malformed
from tidegate.spark.sinks.writer import SinkWriter
from tidegate.spark.tally import Tally
from tidegate.spark.values.decoding import MALFORMED

_TOTAL = "total"
BATCH = "_batch"
"""The column of the batch that gave a result, with output_mode update."""


@dataclass(frozen=True)
class BatchResult:
    """What a batch did to its sinks, and how its rows met what was expected."""

    sinks: dict[str, SinkRecord]
    quarantined: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    input_rows: int | None = None
    """How many rows were read, where Spark may count some twice."""


@dataclass(frozen=True)
class Outlet:
    """A sink, and the rows that it takes."""

    writer: SinkWriter
    gate: Gate
    where: str | None = None

    def choose(self, rows: DataFrame) -> DataFrame:
        """Choose the rows that the sink takes."""
        return rows.where(self.where) if self.where else rows


@dataclass(frozen=True)
class _Written:
    """What became of the rows that one outlet was given."""

    outlet: Outlet
    marked: Tally
    record: SinkRecord

    @property
    def was_counted(self) -> bool:
        """Whether the rows' tallies are known from writing them."""
        return self.outlet.writer.is_observed and not self.record.is_replay


@dataclass(frozen=True)
class BatchWriter:
    """Writes batches, each exactly once."""

    outlets: tuple[Outlet, ...]
    gate: Gate
    quarantine: Quarantine
    adds_batch: bool = False
    """Whether rows say which batch gave them, so that a later result is known from an earlier."""
    remembers: bool = False
    """Whether steps keep state: it is saved only where all rows are made, and once."""
    prepare: Callable[[DataFrame], DataFrame] | None = None
    """Takes rows through the steps, where batches are as their source gave them."""
    read_malformed: Callable[[int], DataFrame] | None = None
    """Reads what did not parse in a batch, where its rows no longer tell."""
    find_time: Callable[[int], int | None] = lambda _: None
    """Finds the time of a batch, in milliseconds; None leaves it to the clock."""
    check: Callable[[], None] = lambda: None
    """Refuses, before anything is written, where the checkpoint is another process's by now."""

    def write(self, batch: DataFrame, batch_id: int, query_id: str) -> BatchResult:
        """Write a batch to every sink; a sink that has it already passes it over."""
        is_split = MALFORMED in batch.columns
        is_bad = F.col(MALFORMED).isNotNull() if is_split else F.lit(False)
        raw = Tally(batch, {MALFORMED: is_bad, _TOTAL: F.lit(True)} if self.prepare else {})
        rows = raw.rows.where(~is_bad).drop(MALFORMED) if is_split else raw.rows
        rows = forget_order(rows) if self.remembers else rows
        rows = self.prepare(rows) if self.prepare else rows
        rows = add_batch(rows, batch_id) if self.adds_batch else rows
        rows = pin_time(self.gate.mark(rows), self.find_time(batch_id))
        marked = Tally(rows, self.gate.list_counts())
        with self._hold(marked.rows) as (held, is_held):
            if is_held:
                self.gate.judge(marked.read(were_written=False))
            written = [
                self._write_outlet(outlet, self.gate.keep(held), batch_id, query_id)
                for outlet in self.outlets
            ]
            were_written = is_held or any(one.was_counted for one in written)
            counts = marked.read(were_written=were_written)
            failed = self.gate.report(counts)
            aside = [shape_failed(self.gate, held)] if self.gate.count_aside(counts) else []
            for one in written:
                gate = one.outlet.gate
                counts = one.marked.read(were_written=one.was_counted)
                failed |= gate.report(counts)
                aside += [shape_failed(gate, one.marked.rows)] if gate.count_aside(counts) else []
            # Counting the rows after the steps has counted these too.
            seen = raw.read(were_written=were_written or bool(self.gate.rules))
            aside += self._find_malformed(batch, seen.get(MALFORMED, 0), batch_id)
            self.check()
            quarantined = self.quarantine.write(aside, batch_id, query_id) if aside else 0
        records = {one.outlet.writer.name: one.record for one in written}
        return BatchResult(records, quarantined or 0, failed, seen.get(_TOTAL))

    @property
    def puts_aside(self) -> bool:
        """Whether rows may be read once more, to be put aside; Spark counts them twice then."""
        gates = [self.gate, *(outlet.gate for outlet in self.outlets)]
        return any(gate.puts_aside for gate in gates)

    def _write_outlet(
        self, outlet: Outlet, rows: DataFrame, batch_id: int, query_id: str
    ) -> _Written:
        chosen = pin_time(outlet.gate.mark(outlet.choose(rows)), self.find_time(batch_id))
        marked = Tally(chosen, outlet.gate.list_counts())
        if outlet.gate.has_shares:
            outlet.gate.judge(marked.read(were_written=False))
        self.check()
        record = outlet.writer.write(outlet.gate.keep(marked.rows), batch_id, query_id)
        return _Written(outlet, marked, record)

    def _find_malformed(self, batch: DataFrame, count: int, batch_id: int) -> list[DataFrame]:
        if self.read_malformed is not None:
            malformed = self.read_malformed(batch_id)
            return [] if malformed.isEmpty() else [shape_malformed(malformed)]
        return [shape_malformed(batch.where(F.col(MALFORMED).isNotNull()))] if count else []

    @contextmanager
    def _hold(self, rows: DataFrame) -> Iterator[tuple[DataFrame, bool]]:
        """Keep the rows of a batch that are needed more than once, so that they are made once."""
        if not self._needs_rows_again(rows):
            yield rows, False
            return
        with hold(rows):
            if self.remembers:
                # Sinks that have the batch already would make no rows, and no state would be saved.
                rows.write.format("noop").mode("overwrite").save()
            yield rows, True

    def _needs_rows_again(self, rows: DataFrame) -> bool:
        gates = [self.gate, *(outlet.gate for outlet in self.outlets)]
        counts_late = not all(outlet.writer.is_observed for outlet in self.outlets)
        return (
            self.remembers
            or len(self.outlets) > 1
            or any(gate.has_shares for gate in gates)
            or any(gate.rules and counts_late for gate in gates)
            or (any(gate.puts_aside for gate in gates) and not is_repeatable(rows))
        )


def add_batch(rows: DataFrame, batch_id: int) -> DataFrame:
    """Add the batch that rows were given by."""
    return rows.withColumn(BATCH, F.lit(batch_id).cast("long"))


def forget_order(batch: DataFrame) -> DataFrame:
    """Take a batch as plain rows: what Spark says of their order cannot always be persisted."""
    session, frame = batch.sparkSession, batch._jdf  # noqa: SLF001
    rows = frame.queryExecution().toRdd()
    create = session._jsparkSession.internalCreateDataFrame  # noqa: SLF001
    return DataFrame(create(rows, frame.schema(), False), session)


def is_repeatable(rows: DataFrame) -> bool:
    """Whether rows that are made again are the same: a row must not be kept and put aside both."""
    return bool(rows._jdf.queryExecution().analyzed().deterministic())  # noqa: SLF001
