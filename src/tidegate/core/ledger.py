"""The run ledger: what each run was to reach, what it did, in plain files beside the checkpoint.

    runs/latest.json                      the newest plan, whatever it decided
    runs/renewal.json                     the batch up to which no sink knows the query's id, if any
    runs/shape.json                       what of the spec going on depends on, by the newest driver
    runs/batches/<batch>.json             what a batch did, written after its commit
    runs/run=<id>/plan.json               what the run is to reach
    runs/run=<id>/attempts/<began>.json   a driver's: when it began, how it ended

Every file has one writer and is written whole, so that no lock and no database is needed. A run
with nothing to do leaves no folder, so that ticks cost no space.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import count
from typing import Any, Self, TypeVar
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError
from upath import UPath

from tidegate.core.errors import LedgerError
from tidegate.core.lateness import EventTimes
from tidegate.core.shape import SHAPE, Shape
from tidegate.core.storage import list_names, read_json, spell_name, write_json
from tidegate.core.target import Target
from tidegate.core.waiting import Waiting

T = TypeVar("T")


class Decision(StrEnum):
    """What plan found."""

    RUN = "run"
    IDLE = "idle"
    BLOCKED = "blocked"


class Outcome(StrEnum):
    """How a driver's attempt stands."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True)
class Baseline:
    """Where the checkpoint stood when the run was planned."""

    query_id: str | None = None
    committed_batch: int | None = None

    def extend(self, other: Baseline) -> Baseline:
        """Go on to where another stands, if it is of the same query and further."""
        is_further = rank_batch(other.committed_batch) > rank_batch(self.committed_batch)
        return other if self.query_id in (None, other.query_id) and is_further else self


def rank_batch(batch_id: int | None) -> int:
    """Order batches, with none at all before the first."""
    return -1 if batch_id is None else batch_id


@dataclass(frozen=True)
class Announcement:
    """The newest batch that downstream was told of."""

    query_id: str | None = None
    batch_id: int | None = None

    def find_batch(self, query_id: str | None) -> int | None:
        """Find the newest batch of a query that was told."""
        return self.batch_id if self.query_id == query_id else None


@dataclass(frozen=True)
class Plan:
    """What a run is to reach, or why there is none."""

    run_id: str
    decision: Decision
    reason: str
    planned_at: str
    target: Target | None = None
    """What confirm waits for; an idle run has one if earlier commits are yet to be announced."""
    baseline: Baseline = field(default_factory=Baseline)
    warning: str | None = None
    """What goes on all the same, and should be known."""
    announced: Announcement | None = None
    """What downstream had been told of; None where nobody is told."""
    source_ids: dict[str, str] = field(default_factory=dict)
    """By which the source is known again, such as topics' ids."""
    accepts_loss: bool = False
    """Whether records that expired unread are given up."""
    is_passing: bool = False
    """Whether what blocks the run may go away by itself."""
    tables: dict[str, str] = field(default_factory=dict)
    """The Delta tables that must hold what the run commits, by the name of their sink."""
    waiting: dict[str, Waiting] = field(default_factory=dict)
    """What waited in each source; of older plans, and of sources without an end, nothing."""

    def has_news(self, query_id: str | None, committed: int | None) -> bool:
        """Whether anything is committed that downstream was not told of."""
        return committed is not None and committed >= self.find_first_untold(query_id, committed)

    def find_first_untold(self, query_id: str | None, committed: int | None) -> int:
        """Find the first batch that downstream was not told of, as of when the run was planned."""
        told = self.announced.find_batch(query_id) if self.announced else None
        if told is None:
            # Not known: then this run's own, and the newest one at the least.
            told = min(rank_batch(self.baseline.committed_batch), rank_batch(committed) - 1)
        return told + 1


@dataclass(frozen=True)
class Stop:
    """Where a run stopped short of its target, as it was told to."""

    reason: str
    batch_id: int
    """The newest batch that it committed."""


@dataclass(frozen=True)
class Attempt:
    """One driver's work on a run."""

    outcome: Outcome
    started_at: str
    ended_at: str | None = None
    error: str | None = None
    stop: Stop | None = None
    """None where it read all that there was, or failed."""


@dataclass(frozen=True)
class BatchRecord:
    """One committed batch, as its driver saw it, or as the logs tell it."""

    batch_id: int
    run_id: str
    input_rows: int | None
    """None where the driver was killed before it could tell; so are the seconds."""
    seconds: float | None
    committed_at: str
    sources: list[dict[str, Any]]
    sinks: dict[str, SinkRecord]
    quarantined: int | None = 0
    """How many values and rows were put aside."""
    failed: dict[str, int] | None = field(default_factory=dict)
    """How many rows failed each expectation; those of a sink are named sink.rule. None where the
    driver was killed before it could tell."""
    metrics: Metrics | None = None
    """How the batch went; None where the driver was killed before it could tell."""


@dataclass(frozen=True)
class Metrics:
    """How a batch went, as Spark reports it."""

    input_rows_per_second: float | None = None
    processed_rows_per_second: float | None = None
    phases_ms: dict[str, int] = field(default_factory=dict)
    """How long each phase took."""
    watermark: str | None = None
    state_rows: int = 0
    state_bytes: int = 0
    state_rows_growth: int | None = None
    """By how many rows the state grew since the batch before; None where that is not known."""
    state_bytes_growth: int | None = None
    late_rows: int = 0
    """At least so many rows came after the watermark and were left out.

    Spark counts them where state is kept, and what an aggregation has put together by then counts as one.
    """
    event_times: dict[str, EventTimes] = field(default_factory=dict)
    """What was observed of the event times of each source."""


@dataclass(frozen=True)
class SinkRecord:
    """What one batch did to one sink."""

    rows: int | None
    version: int | None
    is_replay: bool = False
    """The sink already held the batch, so nothing was written again."""


@dataclass(frozen=True)
class Run:
    """All that the ledger knows of a run."""

    plan: Plan
    attempt: Attempt | None = None
    batches: tuple[BatchRecord, ...] = ()

    @property
    def left_at(self) -> Baseline:
        """Where the run left the checkpoint, as far as the ledger knows."""
        batches = [self.plan.baseline.committed_batch, *(batch.batch_id for batch in self.batches)]
        return replace(self.plan.baseline, committed_batch=max(batches, key=rank_batch))

    @property
    def summary(self) -> Summary:
        """What the run's batches add up to."""
        return Summary.of(self.batches)

    @property
    def seconds(self) -> float:
        """Time from the plan to the driver's end, or to its newest commit while it works."""
        ends = [batch.committed_at for batch in self.batches]
        if self.attempt:
            ends.append(self.attempt.ended_at or self.attempt.started_at)
        began = datetime.fromisoformat(self.plan.planned_at)
        spans = ((datetime.fromisoformat(end) - began).total_seconds() for end in ends)
        return max([0.0, *spans])


@dataclass(frozen=True)
class Summary:
    """What some batches add up to."""

    batches: tuple[int, ...]
    input_rows: int | None
    """None where one of them did not tell; so are the rows written."""
    output_rows: int | None
    quarantined: int | None
    versions: dict[str, int]
    """The newest version of each sink."""
    failed: dict[str, int] | None = field(default_factory=dict)
    """How many rows failed each expectation."""

    @classmethod
    def of(cls, batches: Iterable[BatchRecord]) -> Self:
        """Add up batches, in their order."""
        batches = tuple(batches)
        sinks = [(name, sink) for batch in batches for name, sink in batch.sinks.items()]
        return cls(
            batches=tuple(batch.batch_id for batch in batches),
            input_rows=add_up(batch.input_rows for batch in batches),
            output_rows=add_up(sink.rows for _, sink in sinks),
            quarantined=add_up(batch.quarantined for batch in batches),
            versions={name: sink.version for name, sink in sinks if sink.version is not None},
            failed=_add_up_each(batch.failed for batch in batches),
        )


def add_up(counts: Iterable[int | None]) -> int | None:
    """Add up counts; None where one is not known."""
    counts = list(counts)
    return None if None in counts else sum(count or 0 for count in counts)


def _add_up_each(counted: Iterable[dict[str, int] | None]) -> dict[str, int] | None:
    total: Counter[str] = Counter()
    for counts in counted:
        if counts is None:
            return None
        total.update(counts)
    return dict(total)


RENEWAL = "renewal.json"
_BASELINE: TypeAdapter[Baseline] = TypeAdapter(Baseline)
_PLAN: TypeAdapter[Plan] = TypeAdapter(Plan)
_ATTEMPT: TypeAdapter[Attempt] = TypeAdapter(Attempt)
_BATCH: TypeAdapter[BatchRecord] = TypeAdapter(BatchRecord)


@dataclass(frozen=True)
class Ledger:
    """The runs of one pipeline."""

    folder: UPath

    @classmethod
    def beside(cls, state: UPath) -> Self:
        """Open the ledger in a pipeline's state folder."""
        return cls(state / "runs")

    def open_run(self, plan: Plan) -> Plan:
        """Record what a run is to reach; a run that is planned again counts from where it began."""
        file = self._folder_of(plan.run_id) / "plan.json"
        previous = self._read(_PLAN, file)
        if previous and previous.decision is Decision.RUN:
            plan = replace(plan, baseline=previous.baseline, planned_at=previous.planned_at)
        written = _PLAN.dump_python(plan, mode="json")
        if plan.target:
            write_json(file, written)
        write_json(self._latest, written)
        return plan

    def record_attempt(self, run_id: str, attempt: Attempt) -> None:
        """Record how a driver's attempt stands."""
        name = f"{quote(attempt.started_at, safe='+:')}.json"
        write_json(self._folder_of(run_id) / "attempts" / name, asdict(attempt))

    def record_batch(self, batch: BatchRecord) -> None:
        """Record a committed batch."""
        write_json(self._name_batch(batch.batch_id), asdict(batch))

    def read_plan(self, run_id: str) -> Plan:
        """Read what a run is to reach."""
        latest = self._read(_PLAN, self._latest)
        if latest and latest.run_id == run_id:
            return latest
        plan = self._read(_PLAN, self._folder_of(run_id) / "plan.json")
        if plan is None:
            raise LedgerError(
                f"Run {run_id!r} is not in the ledger {self.folder}.",
                cause="It was never planned, or the state folder is another one.",
                remedy="Check TIDEGATE_STATE, and plan the run before it is submitted.",
            )
        return plan

    def read_attempt(self, run_id: str) -> Attempt | None:
        """Read the newest attempt at a run; an older driver that lingers does not count."""
        folder = self._folder_of(run_id) / "attempts"
        names = (name for name in list_names(folder) if not name.startswith("."))
        newest = max(names, default=None)
        return self._read(_ATTEMPT, folder / newest) if newest else None

    def read_batch(self, batch_id: int) -> BatchRecord | None:
        """Read what a batch did; None where nobody wrote it down."""
        return self._read(_BATCH, self._name_batch(batch_id))

    def read_batches(self, after: int | None) -> Iterator[BatchRecord]:
        """Read the batches that follow one, up to the first that is not written down."""
        for batch_id in count(rank_batch(after) + 1):
            batch = self.read_batch(batch_id)
            if batch is None:
                return
            yield batch

    def read_newest_batches(self, newest: int | None, limit: int) -> Iterator[BatchRecord]:
        """Read batches from one downwards, as many as asked for; those not written down left out."""
        first = rank_batch(newest)
        for batch_id in range(first, max(-1, first - limit), -1):
            batch = self.read_batch(batch_id)
            if batch:
                yield batch

    def sum_up(self, first: int, last: int | None) -> Summary:
        """Add up the batches from one to another; of what nobody wrote down, rows are unknown."""
        ids = range(first, rank_batch(last) + 1)
        records = [self.read_batch(batch_id) for batch_id in ids]
        summary = Summary.of(record for record in records if record)
        if all(records):
            return summary
        return Summary(tuple(ids), None, None, None, summary.versions, None)

    def read_run(self, run_id: str) -> Run:
        """Read all that is known of a run."""
        return self._read_run(self.read_plan(run_id))

    def find_renewal(self) -> Baseline | None:
        """Find up to where no sink knows the query: it got a new id there, or batches were skipped."""
        return self._read(_BASELINE, self.folder / RENEWAL)

    def record_shape(self, shape: Shape) -> None:
        """Record what of the spec going on depends on."""
        write_json(self._shape, shape.to_json())

    def read_shape(self) -> Shape | None:
        """Read what the newest driver's spec was like."""
        return self._read(SHAPE, self._shape)

    def find_latest(self) -> Run | None:
        """Read the run that was planned last."""
        plan = self.find_latest_plan()
        return self._read_run(plan) if plan else None

    def find_latest_plan(self) -> Plan | None:
        """Read the newest plan, and nothing of what came of it."""
        return self._read(_PLAN, self._latest)

    def _read_run(self, plan: Plan) -> Run:
        batches = self.read_batches(after=plan.baseline.committed_batch)
        return Run(
            plan=plan,
            attempt=self.read_attempt(plan.run_id),
            batches=tuple(batch for batch in batches if batch.run_id == plan.run_id),
        )

    @property
    def _shape(self) -> UPath:
        return self.folder / "shape.json"

    @property
    def _latest(self) -> UPath:
        return self.folder / "latest.json"

    def _name_batch(self, batch_id: int) -> UPath:
        return self.folder / "batches" / f"{batch_id}.json"

    def _folder_of(self, run_id: str) -> UPath:
        # The prefix keeps ids such as '..' and 'latest.json' from being names of their own.
        return self.folder / f"run={spell_name(run_id)}"

    @staticmethod
    def _read(adapter: TypeAdapter[T], file: UPath) -> T | None:
        try:
            value = read_json(file)
            return None if value is None else adapter.validate_python(value)
        except (ValidationError, ValueError) as error:
            raise LedgerError(
                f"The ledger file {file} is broken: {error}.",
                remedy="Move the file away; the next run writes a new one.",
            ) from error
