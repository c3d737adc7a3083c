"""What a sensor may wait for, and the verdict on it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter
from upath import UPath

from tidegate.core.checkpoint.progress import Progress, State, read_progress
from tidegate.core.errors import CheckpointError
from tidegate.core.ledger import Ledger, Outcome, Run, rank_batch
from tidegate.core.target import Target, find_shortfall


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
    # The ledger first: a job that commits and ends in between must not look as if it ended short.
    runs = {
        condition: Ledger.beside(checkpoint.parent).read_run(condition.run_id)
        for condition in conditions
        if isinstance(condition, RunReached)
    }
    progress = read_progress(checkpoint)
    if not progress.is_readable:
        return Judgement(Verdict.FAILED, progress.problem or "unreadable", progress)
    try:
        for condition in conditions:
            verdict, reason = (
                _judge_run(runs[condition], progress, checkpoint)
                if isinstance(condition, RunReached)
                else _judge_condition(condition, progress, checkpoint)
            )
            if verdict is not Verdict.REACHED:
                return Judgement(verdict, reason, progress)
    except CheckpointError as error:
        return Judgement(Verdict.FAILED, str(error), progress)
    return Judgement(Verdict.REACHED, "all conditions hold", progress)


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
    commit = checkpoint / "commits" / str(progress.committed_batch)
    written = commit.fs.modified(commit.path)
    is_aware = written.tzinfo is not None
    age = datetime.now(UTC) - (written if is_aware else written.replace(tzinfo=UTC))
    return float(age.total_seconds())


def _judge_run(run: Run, progress: Progress, checkpoint: UPath) -> tuple[Verdict, str]:
    contradiction = _find_replacement(run, progress) or _find_disagreement(run, progress)
    if contradiction:
        return Verdict.FAILED, contradiction
    if run.plan.target is None:
        return Verdict.FAILED, f"The run was planned as {run.plan.decision}: {run.plan.reason}."
    shortfall = find_shortfall(run.plan.target, progress, checkpoint)
    if shortfall is None:
        return Verdict.REACHED, ""
    if run.attempt is None or run.attempt.outcome is Outcome.RUNNING:
        return Verdict.WAITING, shortfall
    ended = "failed" if run.attempt.outcome is Outcome.FAILED else "ended"
    error = f" It said: {run.attempt.error}" if run.attempt.error else ""
    return Verdict.FAILED, (
        f"The job {ended} without reaching {run.plan.target.describe()}: {shortfall}.{error} "
        "Clear the submit task to go on from the last commit."
    )


def _find_replacement(run: Run, progress: Progress) -> str | None:
    baseline = run.plan.baseline
    is_other = baseline.query_id is not None and progress.query_id != baseline.query_id
    if not is_other and rank_batch(progress.committed_batch) >= rank_batch(
        baseline.committed_batch
    ):
        return None
    return (
        f"The checkpoint was replaced since the run was planned: it was query "
        f"{baseline.query_id} at batch {baseline.committed_batch}, it is {progress.query_id} at "
        f"{progress.committed_batch}. Find out who did so, then start a new run."
    )


def _find_disagreement(run: Run, progress: Progress) -> str | None:
    """Find a commit log that says other than what the driver saw when it committed."""
    recorded = [b for b in run.batches if b.batch_id == progress.committed_batch]
    committed = [source.committed for source in progress.sources]
    if not recorded or [source["endOffset"] for source in recorded[0].sources] == committed:
        return None
    return (
        f"offsets/{progress.committed_batch} is not what the driver committed: it says "
        f"{committed}, the ledger {[source['endOffset'] for source in recorded[0].sources]}. "
        "Restore the checkpoint from a backup."
    )
