"""What a sensor may wait for, and the verdict on it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter
from upath import UPath

from tidegate.core.checkpoint.log import find_commit_time
from tidegate.core.checkpoint.progress import Progress, State, read_progress
from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import CheckpointError, LedgerError, SourceError
from tidegate.core.ledger import Attempt, Baseline, Ledger, Outcome, Plan, rank_batch
from tidegate.core.spec.sinks.delta import name_writer
from tidegate.core.storage import open_path
from tidegate.core.target import Target, find_shortfall, needs_report


class Verdict(StrEnum):
    """Whether a condition holds, may still hold, or never will."""

    REACHED = "reached"
    WAITING = "waiting"
    FAILED = "failed"


@dataclass(frozen=True)
class Judgement:
    """A verdict, its reason, and the progress it was made on."""

    verdict: Verdict
    reason: str
    progress: Progress


@dataclass(frozen=True)
class Covers:
    """The committed offsets cover this target."""

    target: Target
    kind: Literal["covers"] = "covers"


@dataclass(frozen=True)
class BatchAtLeast:
    """A batch with at least this id is committed."""

    batch_id: int
    kind: Literal["batch_at_least"] = "batch_at_least"


@dataclass(frozen=True)
class NothingPending:
    """The newest planned batch is committed."""

    kind: Literal["nothing_pending"] = "nothing_pending"


@dataclass(frozen=True)
class CommittedWithin:
    """The newest commit is at most this old."""

    seconds: float
    kind: Literal["committed_within"] = "committed_within"


@dataclass(frozen=True)
class WatermarkAtLeast:
    """The committed watermark, in epoch milliseconds, is at least this."""

    watermark_ms: int
    kind: Literal["watermark_at_least"] = "watermark_at_least"


@dataclass(frozen=True)
class RunReached:
    """A planned run reached its target; its ledger is beside the checkpoint."""

    run_id: str
    kind: Literal["run_reached"] = "run_reached"


Condition = Annotated[
    Covers | BatchAtLeast | NothingPending | CommittedWithin | WatermarkAtLeast | RunReached,
    Field(discriminator="kind"),
]
_ADAPTER: TypeAdapter[list[Condition]] = TypeAdapter(list[Condition])


def dump_conditions(conditions: list[Condition]) -> list[dict[str, Any]]:
    """Write conditions in their JSON form."""
    return _ADAPTER.dump_python(conditions, mode="json")  # type: ignore[no-any-return]


def parse_conditions(value: Any) -> list[Condition]:
    """Read conditions from their JSON form."""
    return _ADAPTER.validate_python(value)


def judge(checkpoint: UPath, conditions: list[Condition]) -> Judgement:
    """Judge all conditions on one reading of a checkpoint."""
    ledger = Ledger.beside(checkpoint.parent)
    # The ledger first: a job that commits and ends in between must not look as if it ended short.
    try:
        attempts = {
            condition.run_id: ledger.read_attempt(condition.run_id)
            for condition in conditions
            if isinstance(condition, RunReached)
        }
    except LedgerError as error:
        return Judgement(Verdict.FAILED, str(error), read_progress(checkpoint))
    progress = read_progress(checkpoint)
    if not progress.is_readable:
        return Judgement(Verdict.FAILED, progress.problem or "unreadable", progress)
    try:
        told = ""
        for condition in conditions:
            verdict, reason = (
                _RunJudge(ledger, condition.run_id, progress, checkpoint).judge(
                    attempts[condition.run_id]
                )
                if isinstance(condition, RunReached)
                else _judge_condition(condition, progress, checkpoint)
            )
            if verdict is not Verdict.REACHED:
                return Judgement(verdict, reason, progress)
            told = told or reason
    except (CheckpointError, LedgerError, SourceError) as error:
        return Judgement(Verdict.FAILED, str(error), progress)
    return Judgement(Verdict.REACHED, told or "all conditions hold", progress)


def _judge_condition(
    condition: Condition, progress: Progress, checkpoint: UPath
) -> tuple[Verdict, str]:
    unmet = _find_unmet(condition, progress, checkpoint)
    return (Verdict.WAITING, unmet) if unmet else (Verdict.REACHED, "")


def _find_unmet(condition: Condition, progress: Progress, checkpoint: UPath) -> str | None:
    """Say what a condition still waits for, or None when it holds."""
    committed = progress.committed_batch
    match condition:
        case Covers(target):
            return find_shortfall(target, progress, checkpoint)
        case NothingPending():
            is_settled = progress.state is State.COMMITTED
            return None if is_settled else _describe_unsettled(progress)
        case BatchAtLeast(wanted):
            if committed is not None and committed >= wanted:
                return None
            return f"batch {wanted} is not committed; the newest commit is {committed}"
        case WatermarkAtLeast(wanted):
            if progress.watermark_ms is not None and progress.watermark_ms >= wanted:
                return None
            return f"the watermark is {progress.watermark_ms}, below {wanted}"
        case CommittedWithin(seconds):
            age = _find_commit_age(progress, checkpoint)
            if age is not None and age <= seconds:
                return None
            return f"the newest commit is {age:.0f} s old" if age is not None else "no commit yet"
    raise AssertionError(condition)


def _describe_unsettled(progress: Progress) -> str:
    if progress.state is State.NEVER_RAN:
        return "the query never ran"
    return f"batch {progress.planned_batch} is pending"


def _find_commit_age(progress: Progress, checkpoint: UPath) -> float | None:
    if progress.committed_batch is None:
        return None
    committed_at = find_commit_time(checkpoint, progress.committed_batch)
    return (datetime.now(UTC) - committed_at).total_seconds() if committed_at else None


@dataclass(frozen=True)
class _RunJudge:
    """Judges one planned run by the commit log."""

    ledger: Ledger
    run_id: str
    progress: Progress
    checkpoint: UPath

    def judge(self, attempt: Attempt | None) -> tuple[Verdict, str]:
        plan = self.ledger.read_plan(self.run_id)
        contradiction = self._find_replacement(plan.baseline) or self._find_disagreement()
        if contradiction:
            return Verdict.FAILED, contradiction
        if plan.target is None:
            return Verdict.FAILED, f"The run was planned as {plan.decision}: {plan.reason}."
        shortfall = find_shortfall(plan.target, self.progress, self.checkpoint)
        if shortfall is None and needs_report(plan.target):
            shortfall = _find_silence(attempt)
        stop = self._find_stop(attempt) if shortfall else None
        if shortfall is None or stop:
            lacking = self._find_lacking_table(plan)
            return (Verdict.FAILED, lacking) if lacking else (Verdict.REACHED, stop or "")
        if attempt is None or attempt.outcome is Outcome.RUNNING:
            return Verdict.WAITING, shortfall
        ended = "failed" if attempt.outcome is Outcome.FAILED else "ended"
        error = f" It said: {attempt.error}" if attempt.error else ""
        return Verdict.FAILED, (
            f"The job {ended} without reaching {plan.target.describe()}: {shortfall}.{error} "
            "Clear the submit task to go on from the last commit."
        )

    def _find_stop(self, attempt: Attempt | None) -> str | None:
        """Find whether the job stopped short of its target as it was told to, and committed that far."""
        if attempt is None or attempt.outcome is not Outcome.SUCCEEDED or attempt.stop is None:
            return None
        if rank_batch(self.progress.committed_batch) < attempt.stop.batch_id:
            return None
        return f"{attempt.stop.reason}; the next run goes on"

    def _find_replacement(self, baseline: Baseline) -> str | None:
        query_id, batch = self.progress.query_id, self.progress.committed_batch
        is_other = baseline.query_id is not None and query_id != baseline.query_id
        if not is_other and rank_batch(batch) >= rank_batch(baseline.committed_batch):
            return None
        return (
            f"The checkpoint was replaced since the run was planned: it was query "
            f"{baseline.query_id} at batch {baseline.committed_batch}, it is {query_id} at "
            f"{batch}. Find out who did so, then start a new run."
        )

    def _find_lacking_table(self, plan: Plan) -> str | None:
        """Find a table that does not hold what the commit log says: a commit alone proves no rows."""
        batch, query_id = self.progress.committed_batch, self.progress.query_id
        if query_id is None or rank_batch(batch) <= rank_batch(plan.baseline.committed_batch):
            return None  # what was committed before is for plan to judge
        for sink, table in plan.tables.items():
            log = DeltaLog(open_path(table))
            newest = log.find_version()
            app_id = name_writer(query_id, sink)
            held = None if newest is None else log.find_transaction(newest, app_id)
            if rank_batch(held) < rank_batch(batch):
                return (
                    f"Batch {batch} is committed, but the table {table} holds "
                    f"{'no batch' if held is None else f'batches up to {held} only'} of this query: "
                    "it was deleted, restored or replaced meanwhile. Restore the table, or rewind the "
                    f"checkpoint: 'tidegate checkpoint doctor {self.checkpoint}' tells more."
                )
        return None

    def _find_disagreement(self) -> str | None:
        """Find a commit log that says other than what the driver saw when it committed."""
        batch = self.progress.committed_batch
        recorded = None if batch is None else self.ledger.read_batch(batch)
        if recorded is None or not recorded.sources:
            return None
        # Spark reports sources that have names in another order than it writes them down.
        seen = sorted(_spell(source["endOffset"]) for source in recorded.sources)
        committed = sorted(_spell(source.committed) for source in self.progress.sources)
        if seen == committed:
            return None
        return (
            f"offsets/{batch} is not what the driver committed: it says {', '.join(committed)}, "
            f"the ledger {', '.join(seen)}. Restore the checkpoint from a backup."
        )


def _find_silence(attempt: Attempt | None) -> str | None:
    has_told = attempt is not None and attempt.outcome is Outcome.SUCCEEDED and not attempt.stop
    return None if has_told else "the job has not said that it read all there was"


def _spell(position: Any) -> str:
    return json.dumps(position, sort_keys=True)
