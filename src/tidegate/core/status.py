"""Where a pipeline stands: its last run and its committed position, in one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from upath import UPath

from tidegate.core.checkpoint.position import describe_position
from tidegate.core.checkpoint.progress import Progress, read_progress
from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import LedgerError, TidegateError
from tidegate.core.ledger import Decision, Ledger, Outcome, Run, rank_batch
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import LoadedSpec
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.target import find_shortfall


class RunState(StrEnum):
    """How a pipeline's last run stands."""

    NEVER_RAN = "never_ran"
    IDLE = "idle"
    BLOCKED = "blocked"
    PLANNED = "planned"
    RUNNING = "running"
    FAILED = "failed"
    SHORT = "short"
    """The job ended well, but before its target."""
    COMMITTED = "committed"
    UNKNOWN = "unknown"
    """The ledger is broken, so that nothing can be said of the last run."""
    INVALID = "invalid"
    """The spec has mistakes."""


UNHEALTHY = frozenset(
    {RunState.BLOCKED, RunState.FAILED, RunState.SHORT, RunState.UNKNOWN, RunState.INVALID}
)


@dataclass(frozen=True)
class PipelineStatus:
    """Where a pipeline stands."""

    pipeline: str
    state: RunState
    reason: str
    run_id: str | None = None
    warning: str | None = None
    batches: int = 0
    rows: int | None = 0
    """None where a killed driver left nobody to tell; so are those put aside."""
    quarantined: int | None = 0
    committed_batch: int | None = None
    committed: str = "-"
    """The committed position, in words."""
    table_version: int | None = None
    seconds: float = 0.0


def order_by_flow(pipelines: Sequence[Pipeline]) -> list[Pipeline]:
    """Order pipelines as rows flow through them, by name where it does not matter."""
    after = {pipeline.name: pipeline.after for pipeline in pipelines}
    depths: dict[str, int] = {}

    def measure(name: str) -> int:
        if name not in depths:
            # Specs that lead back to themselves are refused, so this ends.
            depths[name] = 1 + max(
                (measure(upstream) for upstream in after.get(name, ())), default=0
            )
        return depths[name]

    return sorted(pipelines, key=lambda pipeline: (measure(pipeline.name), pipeline.name))


def list_statuses(specs: Sequence[LoadedSpec], settings: Settings) -> list[PipelineStatus]:
    """Tell where all pipelines stand, in the order of their rows' flow, broken specs last."""
    sound = order_by_flow([spec.require() for spec in specs if not spec.error])
    broken = [
        PipelineStatus(spec.name, RunState.INVALID, str(spec.error)) for spec in specs if spec.error
    ]
    return [*(read_status(pipeline, settings) for pipeline in sound), *broken]


def read_status(pipeline: Pipeline, settings: Settings) -> PipelineStatus:
    """Read where a pipeline stands; what keeps one from being read hides no other."""
    try:
        return _read_status(pipeline, settings)
    except (TidegateError, OSError) as error:
        return PipelineStatus(pipeline.name, RunState.UNKNOWN, str(error))


def _read_status(pipeline: Pipeline, settings: Settings) -> PipelineStatus:
    progress = read_progress(settings.checkpoint_of(pipeline.name))
    try:
        run = Ledger.beside(settings.state_of(pipeline.name)).find_latest()
    except LedgerError as error:
        run, (state, reason) = None, (RunState.UNKNOWN, str(error))
    else:
        state, reason = tell_state(run, progress, settings.checkpoint_of(pipeline.name))
    return PipelineStatus(
        pipeline=pipeline.name,
        state=state,
        run_id=run.plan.run_id if run else None,
        reason=reason,
        warning=run.plan.warning if run else None,
        batches=len(run.batches) if run else 0,
        rows=run.summary.output_rows if run else 0,
        quarantined=run.summary.quarantined if run else 0,
        committed_batch=progress.committed_batch,
        committed=", ".join(describe_position(s.committed) for s in progress.sources) or "-",
        table_version=_find_version(pipeline, settings),
        seconds=round(run.seconds, 1) if run else 0.0,
    )


def _find_version(pipeline: Pipeline, settings: Settings) -> int | None:
    tables = (DeltaLog(settings.locate(sink.table)) for sink in pipeline.delta_sinks)
    return next((table.find_version() for table in tables), None)


def tell_state(run: Run | None, progress: Progress, checkpoint: UPath) -> tuple[RunState, str]:
    """Tell how the newest run stands, and why, by its plan, its driver and the commit log."""
    if not progress.is_readable:
        return RunState.BLOCKED, progress.problem or ""
    if run is None:
        return RunState.NEVER_RAN, "no run was planned yet"
    if run.plan.decision is not Decision.RUN or run.plan.target is None:
        return RunState(run.plan.decision), run.plan.reason
    if run.attempt is None:
        return RunState.PLANNED, run.plan.reason
    if run.attempt.outcome is Outcome.FAILED:
        return RunState.FAILED, run.attempt.error or ""
    if run.attempt.outcome is Outcome.RUNNING:
        return RunState.RUNNING, run.plan.reason
    shortfall = find_shortfall(run.plan.target, progress, checkpoint)
    stop = run.attempt.stop
    if shortfall and stop and rank_batch(progress.committed_batch) >= stop.batch_id:
        return RunState.COMMITTED, f"{stop.reason}; the next run goes on"
    return (RunState.SHORT, shortfall) if shortfall else (RunState.COMMITTED, run.plan.reason)
