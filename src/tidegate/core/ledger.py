"""The run ledger: what each run was to reach, what it did, in plain files beside the checkpoint.

    runs/latest.json                    which run was planned last
    runs/run=<id>/plan.json             written by plan
    runs/run=<id>/attempt.json          written by the driver: when it began, how it ended
    runs/run=<id>/batches/<batch>.json  written by the driver after each commit

Every file has one writer and is written whole, so that no lock and no database is needed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any, Self, TypeVar
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError
from upath import UPath

from tidegate.core.errors import LedgerError
from tidegate.core.storage import list_names, read_json, write_json
from tidegate.core.target import Target

T = TypeVar("T")
_LONGEST_NAME = 200


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


def rank_batch(batch_id: int | None) -> int:
    """Order batches, with none at all before the first."""
    return -1 if batch_id is None else batch_id


@dataclass(frozen=True)
class Plan:
    """What a run is to reach, or why there is none."""

    run_id: str
    decision: Decision
    reason: str
    planned_at: str
    target: Target | None = None
    baseline: Baseline = field(default_factory=Baseline)


@dataclass(frozen=True)
class Attempt:
    """One driver's work on a run."""

    outcome: Outcome
    started_at: str
    ended_at: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class BatchRecord:
    """One committed batch, as the driver saw it."""

    batch_id: int
    input_rows: int
    seconds: float
    committed_at: str
    sources: list[dict[str, Any]]
    sinks: dict[str, SinkRecord]


@dataclass(frozen=True)
class SinkRecord:
    """What one batch did to one sink."""

    rows: int | None
    version: int | None
    is_replay: bool = False
    """The sink already held the batch, so nothing was written again."""


@dataclass(frozen=True)
class Latest:
    """Which run was planned last."""

    run_id: str


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
    def input_rows(self) -> int:
        """Rows read from the source."""
        return sum(batch.input_rows for batch in self.batches)

    @property
    def output_rows(self) -> int:
        """Rows written to the sinks."""
        return sum(sink.rows or 0 for batch in self.batches for sink in batch.sinks.values())

    @property
    def seconds(self) -> float:
        """Time from the plan to the driver's end, or to its newest commit while it works."""
        ends = [batch.committed_at for batch in self.batches]
        if self.attempt:
            ends.append(self.attempt.ended_at or self.attempt.started_at)
        began = datetime.fromisoformat(self.plan.planned_at)
        spans = ((datetime.fromisoformat(end) - began).total_seconds() for end in ends)
        return max([0.0, *spans])

    @property
    def versions(self) -> dict[str, int]:
        """The newest version that the run left in each sink."""
        return {
            name: sink.version
            for batch in self.batches
            for name, sink in batch.sinks.items()
            if sink.version is not None
        }


_PLAN: TypeAdapter[Plan] = TypeAdapter(Plan)
_ATTEMPT: TypeAdapter[Attempt] = TypeAdapter(Attempt)
_BATCH: TypeAdapter[BatchRecord] = TypeAdapter(BatchRecord)
_LATEST: TypeAdapter[Latest] = TypeAdapter(Latest)


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
        write_json(file, _PLAN.dump_python(plan, mode="json"))
        write_json(self.folder / "latest.json", asdict(Latest(plan.run_id)))
        return plan

    def record_attempt(self, run_id: str, attempt: Attempt) -> None:
        """Record how a driver's attempt stands."""
        write_json(self._folder_of(run_id) / "attempt.json", asdict(attempt))

    def record_batch(self, run_id: str, batch: BatchRecord) -> None:
        """Record a committed batch; a replay overwrites its own record."""
        write_json(self._folder_of(run_id) / "batches" / f"{batch.batch_id}.json", asdict(batch))

    def read_run(self, run_id: str) -> Run:
        """Read all that is known of a run."""
        folder = self._folder_of(run_id)
        plan = self._read(_PLAN, folder / "plan.json")
        if plan is None:
            raise LedgerError(
                f"Run {run_id!r} is not in the ledger {self.folder}.",
                cause="It was never planned, or the state folder is another one.",
                remedy="Check TIDEGATE_STATE, and plan the run before it is submitted.",
            )
        stems = (name.removesuffix(".json") for name in list_names(folder / "batches"))
        ids = sorted(int(stem) for stem in stems if stem.isdigit())
        records = (self._read(_BATCH, folder / "batches" / f"{batch}.json") for batch in ids)
        return Run(
            plan=plan,
            attempt=self._read(_ATTEMPT, folder / "attempt.json"),
            batches=tuple(record for record in records if record is not None),
        )

    def find_latest(self) -> Run | None:
        """Read the run that was planned last."""
        latest = self._read(_LATEST, self.folder / "latest.json")
        return self.read_run(latest.run_id) if latest else None

    def _folder_of(self, run_id: str) -> UPath:
        # The prefix keeps ids such as '..' and 'latest.json' from being names of their own.
        quoted = quote(run_id, safe="+:@")
        if len(quoted) > _LONGEST_NAME:
            digest = sha256(run_id.encode()).hexdigest()[:16]
            quoted = f"{quoted[:_LONGEST_NAME]}~{digest}"
        return self.folder / f"run={quoted}"

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
