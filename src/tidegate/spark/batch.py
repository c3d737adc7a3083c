"""What is done with one batch: steps, rules, sinks, quarantine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from tidegate.core.ledger import SinkRecord
from tidegate.core.passage import ALL_SINKS, Passage
from tidegate.core.spec.pipeline import BATCH
from tidegate.spark.gate import Gate
from tidegate.spark.hold import hold
from tidegate.spark.moment import pin_time
from tidegate.spark.quarantine import Quarantine, shape_failed, shape_malformed
from tidegate.spark.sinks.writer import SinkWriter
from tidegate.spark.tally import Tally
from tidegate.spark.values.decoding import MALFORMED

_TOTAL = "total"


@dataclass(frozen=True)
class BatchResult:
    """What a batch did to its sinks, and how its rows met what was expected."""

    sinks: dict[str, SinkRecord]
    quarantined: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    input_rows: int | None = None
    """How many rows were read, where Spark may count some twice."""
    malformed: int = 0
    passages: dict[str, Passage] = field(default_factory=dict)
    """How all rows passed the rules of all sinks, by no name, and of each; where that is asked for."""


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
class _Chosen:
    """The rows that an outlet takes, held against its rules."""

    outlet: Outlet
    marked: Tally

    @classmethod
    def of(cls, outlet: Outlet, rows: DataFrame, at_ms: int | None, *, audits: bool) -> _Chosen:
        """Choose an outlet's rows out of those that all of them may take, as of a time."""
        marked = pin_time(outlet.gate.mark(outlet.choose(rows)), at_ms)
        return cls(outlet, Tally(marked, outlet.gate.list_counts(audits=audits)))

    def judge(self) -> None:
        """Refuse rows by which the run must stop, before any sink has taken its own."""
        gate = self.outlet.gate
        if gate.may_stop:
            gate.judge(self.marked.read(were_written=False))

    def write(self, batch_id: int, query_id: str) -> SinkRecord:
        """Write what the rules leave of them."""
        rows = self.outlet.gate.keep(self.marked.rows)
        return self.outlet.writer.write(rows, batch_id, query_id)


@dataclass(frozen=True)
class _Settled:
    """What became of the rows that a gate left out."""

    failed: dict[str, int]
    quarantined: int = 0


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
    audits: bool = False
    """Whether it is counted what becomes of every row."""
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
        at_ms = self.find_time(batch_id)
        marked = Tally(
            pin_time(self.gate.mark(rows), at_ms), self.gate.list_counts(audits=self.audits)
        )
        with self._hold(marked.rows) as (held, is_held):
            if is_held:
                self.gate.judge(marked.read(were_written=False))
            kept = self.gate.keep(held)
            chosen = [
                _Chosen.of(outlet, kept, at_ms, audits=self.audits) for outlet in self.outlets
            ]
            if is_held:
                for one in chosen:
                    one.judge()
            records: dict[str, SinkRecord] = {}
            settled: list[_Settled] = []
            seen: dict[str, int] = {}
            for one in chosen:
                self.check()
                record = one.write(batch_id, query_id)
                was_counted = one.outlet.writer.is_observed and not record.is_replay
                # Put aside right behind the sink that left the rows out: a replay after a failure
                # may have other rules, and by those they would be nowhere.
                if not records:
                    marked.read(were_written=is_held or was_counted)
                    # Counting the rows after the steps has counted these too.
                    is_seen = is_held or was_counted or bool(self.gate.rules) or self.audits
                    seen = raw.read(were_written=is_seen)
                    malformed = self._find_malformed(batch, seen.get(MALFORMED, 0), batch_id)
                    settled.append(self._settle(self.gate, marked, batch_id, query_id, malformed))
                records[one.outlet.writer.name] = record
                one.marked.read(were_written=was_counted)
                settled.append(self._settle(one.outlet.gate, one.marked, batch_id, query_id))
        failed = {rule: count for part in settled for rule, count in part.failed.items()}
        quarantined = sum(part.quarantined for part in settled)
        return BatchResult(
            *(records, quarantined, failed, seen.get(_TOTAL), seen.get(MALFORMED, 0)),
            self._audit(marked, chosen),
        )

    def _audit(self, marked: Tally, chosen: list[_Chosen]) -> dict[str, Passage]:
        """Tell how all rows passed; they are counted by now."""
        if not self.audits:
            return {}
        passages = {
            one.outlet.writer.name: one.outlet.gate.audit(one.marked.read(were_written=True))
            for one in chosen
        }
        return {ALL_SINKS: self.gate.audit(marked.read(were_written=True))} | passages

    @property
    def puts_aside(self) -> bool:
        """Whether rows may be read once more, to be put aside; Spark counts them twice then."""
        gates = [self.gate, *(outlet.gate for outlet in self.outlets)]
        return any(gate.puts_aside for gate in gates)

    def _settle(
        self,
        gate: Gate,
        marked: Tally,
        batch_id: int,
        query_id: str,
        malformed: Sequence[DataFrame] = (),
    ) -> _Settled:
        """Put aside what a gate left out of rows that are counted by now."""
        counts = marked.read(were_written=True)
        aside = [shape_failed(gate, marked.rows)] if gate.count_aside(counts) else []
        aside += malformed
        if not aside:
            return _Settled(gate.report(counts))
        self.check()
        quarantined = self.quarantine.write(aside, batch_id, query_id, gate.sink)
        return _Settled(gate.report(counts), quarantined or 0)

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
            if self.remembers or (self.prepare and not self.gate.rules):
                # Sinks that have the batch already would make no rows: none would be counted, and
                # no state would be saved.
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
