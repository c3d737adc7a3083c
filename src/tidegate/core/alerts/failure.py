"""Runs that failed, as the ledger and the scheduler know them.

    alerts/failure.json    the newest task that failed for good, as Airflow saw it

The ledger knows what plan and the drivers wrote. A task that fails before it writes anything, or
after all was written, is known to the scheduler alone.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta

from pydantic import TypeAdapter, ValidationError
from upath import UPath

from tidegate.core.ledger import Run
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.status import UNHEALTHY, RunState
from tidegate.core.storage import read_json, write_json

_UNDER_WAY = frozenset({RunState.PLANNED, RunState.RUNNING})
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_NEXT_TRY = timedelta(minutes=1)
"""How long the next try of a task may take to begin, after its delay."""


@dataclass(frozen=True)
class Failure:
    """A run that failed or is blocked."""

    reason: str
    at: str
    run_id: str | None = None
    task: str | None = None
    link: str | None = None
    """Where the task's log is."""


_FAILURE: TypeAdapter[Failure] = TypeAdapter(Failure)


def note_failure(state: UPath, failure: Failure) -> None:
    """Note that a task has failed for good."""
    write_json(_name(state), asdict(failure))


def read_failure(state: UPath) -> Failure | None:
    """Read which task failed last; a broken note is none, since the ledger tells most of it."""
    try:
        value = read_json(_name(state))
        return None if value is None else _FAILURE.validate_python(value)
    except (ValidationError, ValueError):
        return None


def _name(state: UPath) -> UPath:
    return state / "alerts" / "failure.json"


@dataclass(frozen=True)
class RunVerdict:
    """Whether a pipeline's newest run failed."""

    failure: Failure | None = None
    undecided: str | None = None
    """Why nobody can say yet."""


@dataclass(frozen=True)
class RunLook:
    """A pipeline's newest run, as the ledger has it."""

    pipeline: Pipeline
    state: RunState
    reason: str
    run: Run | None = None

    def judge(self, noted: Failure | None, now: datetime) -> RunVerdict:
        """Tell whether the run failed, by the ledger and by what the scheduler noted."""
        if self._has_failed:
            return self._judge_failed(noted, now)
        if noted and datetime.fromisoformat(noted.at) > self._find_newest_sign():
            return RunVerdict(noted)
        return RunVerdict(undecided=self.reason if self.state in _UNDER_WAY else None)

    @property
    def _has_failed(self) -> bool:
        is_stopped = self.run and self.run.attempt and self.run.attempt.stop
        return self.state in UNHEALTHY and not is_stopped

    def _judge_failed(self, noted: Failure | None, now: datetime) -> RunVerdict:
        if self.run is None:
            return RunVerdict(Failure(self.reason, now.isoformat()))
        run_id, at = self.run.plan.run_id, self._find_newest_sign()
        if noted and noted.run_id == run_id:
            return RunVerdict(replace(noted, reason=self.reason))
        if self.pipeline.retries and now - at < self.pipeline.retry_delay + _NEXT_TRY:
            return RunVerdict(undecided=f"it may be tried again: {self.reason}")
        return RunVerdict(Failure(self.reason, at.isoformat(), run_id))

    def _find_newest_sign(self) -> datetime:
        """Find when the ledger was written to last for this run."""
        if self.run is None:
            return _LONG_AGO
        attempt = self.run.attempt
        ends = [attempt.started_at, attempt.ended_at or attempt.started_at] if attempt else []
        return max(map(datetime.fromisoformat, [self.run.plan.planned_at, *ends]))
