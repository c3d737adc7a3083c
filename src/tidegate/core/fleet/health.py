"""How a pipeline is: where it stands, what waits for it, and what somebody should look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from upath import UPath

from tidegate.core.alerts.incident import Incidents
from tidegate.core.checkpoint.log import find_commit_time
from tidegate.core.checkpoint.progress import Progress, State, read_progress
from tidegate.core.errors import LedgerError, TidegateError
from tidegate.core.fleet.lag import Lag, tell_lag
from tidegate.core.ledger import BatchRecord, Ledger, Run
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import LoadedSpec
from tidegate.core.status import UNHEALTHY, RunState, tell_state

LEAST_HEADROOM_SECONDS = 3600
_RECENT = 5
"""So many of the newest batches tell the share that is put aside."""
_AT_WORK = frozenset({RunState.PLANNED, RunState.RUNNING})


class Health(StrEnum):
    """Whether somebody should look at a pipeline."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    NEW = "new"
    """It never ran."""


@dataclass(frozen=True)
class Incident:
    """Something that is wrong, from when it was noticed until it is over."""

    rule: str
    since: str
    message: str


@dataclass(frozen=True)
class PipelineHealth:
    """One pipeline at a glance."""

    pipeline: str
    health: Health
    state: RunState
    reason: str
    description: str = ""
    notes: tuple[str, ...] = ()
    """What goes on all the same, and somebody should know."""
    run_id: str | None = None
    planned_at: str | None = None
    batch: int | None = None
    """The newest batch that is committed."""
    committed_at: str | None = None
    pending_batch: int | None = None
    """A batch that is planned, and not committed."""
    rows: int | None = None
    """What the newest batch read; None where nobody could tell."""
    rows_per_second: float | None = None
    """Of the newest batch that read any."""
    lag: Lag | None = None
    quarantine_share: float | None = None
    """Of what the newest batches read, so much was put aside."""
    late_rows: int = 0
    """At least so many rows of the newest batches came too late."""
    state_bytes: int = 0
    incidents: tuple[Incident, ...] = ()


def read_health(spec: LoadedSpec, settings: Settings) -> PipelineHealth:
    """Read how a pipeline is, from a handful of small files; what cannot be read hides no other."""
    if spec.pipeline is None or spec.error:
        return PipelineHealth(spec.name, Health.ERROR, RunState.INVALID, str(spec.error))
    try:
        found = _read_health(spec.name, settings)
    except (TidegateError, OSError) as error:
        found = PipelineHealth(spec.name, Health.ERROR, RunState.UNKNOWN, str(error))
    return replace(found, description=spec.pipeline.description)


def _read_health(name: str, settings: Settings) -> PipelineHealth:
    checkpoint = settings.checkpoint_of(name)
    ledger = Ledger.beside(settings.state_of(name))
    progress = read_progress(checkpoint)
    try:
        plan = ledger.find_latest_plan()
        run = Run(plan, ledger.read_attempt(plan.run_id)) if plan else None
        recent = tuple(ledger.read_newest_batches(progress.committed_batch, _RECENT))
    except LedgerError as error:
        run, recent, (state, reason) = None, (), (RunState.UNKNOWN, str(error))
    else:
        state, reason = tell_state(run, progress, checkpoint)
    found = _sum_up(name, recent, state, reason)
    committed_at = _find_commit_time(checkpoint, progress, recent)
    # A run that used its budget up is well, and has left something to read.
    stop = run.attempt.stop if run and run.attempt else None
    is_reached = state is RunState.COMMITTED and stop is None
    lag = tell_lag(run.plan, committed_at, is_reached=is_reached) if run else None
    pending = progress.planned_batch if progress.state is State.PENDING else None
    found = replace(
        found,
        run_id=run.plan.run_id if run else None,
        planned_at=run.plan.planned_at if run else None,
        batch=progress.committed_batch,
        committed_at=committed_at,
        pending_batch=pending,
        lag=lag,
    )
    notes = tuple(_list_notes(found, run.plan.warning if run else None))
    incidents = tuple(_list_incidents(settings.state_of(name)))
    health = _judge(state, has_notes=bool(notes or incidents))
    return replace(found, notes=notes, incidents=incidents, health=health)


def _sum_up(
    name: str, recent: Sequence[BatchRecord], state: RunState, reason: str
) -> PipelineHealth:
    newest = recent[0] if recent else None
    metrics = newest.metrics if newest else None
    return PipelineHealth(
        pipeline=name,
        health=Health.OK,
        state=state,
        reason=reason,
        rows=newest.input_rows if newest else None,
        # Spark ends a run with a batch of no rows where it has state to tidy up.
        rows_per_second=next((find_rate(batch) for batch in recent if batch.input_rows), None),
        quarantine_share=find_share(recent),
        late_rows=sum(batch.metrics.late_rows for batch in recent if batch.metrics),
        state_bytes=metrics.state_bytes if metrics else 0,
    )


def find_rate(batch: BatchRecord) -> float | None:
    """Find how many rows a batch read each second; None where nobody could tell."""
    if batch.input_rows is None or not batch.seconds:
        return None
    return round(batch.input_rows / batch.seconds, 1)


def find_share(batches: Sequence[BatchRecord]) -> float | None:
    """Find the share of what batches read that was put aside; None where nobody could tell."""
    known = [
        (batch.quarantined, batch.input_rows)
        for batch in batches
        if batch.quarantined is not None and batch.input_rows
    ]
    read = sum(rows for _, rows in known)
    return round(sum(aside for aside, _ in known) / read, 6) if read else None


def _find_commit_time(
    checkpoint: UPath, progress: Progress, recent: Sequence[BatchRecord]
) -> str | None:
    batch = progress.committed_batch
    if batch is None:
        return None
    if recent and recent[0].batch_id == batch:
        return recent[0].committed_at
    written = find_commit_time(checkpoint, batch)
    return written.isoformat(timespec="milliseconds") if written else None


def _list_notes(found: PipelineHealth, warning: str | None) -> Iterator[str]:
    if warning:
        yield warning
    if found.pending_batch is not None and found.state not in _AT_WORK:
        yield f"batch {found.pending_batch} is pending; the next run replays it"
    headroom = found.lag.headroom_seconds if found.lag else None
    if headroom is not None and headroom < LEAST_HEADROOM_SECONDS:
        yield f"what waits longest is kept for {max(0, round(headroom / 60))} minutes more"
    if found.late_rows:
        yield f"at least {found.late_rows:,} rows came too late and were left out"


def _list_incidents(state: UPath) -> Iterator[Incident]:
    """List what the alerts of a pipeline have noticed and is not over."""
    for one in Incidents.beside(state).list_open():
        yield Incident(one.alert.rule, one.opened_at, f"{one.alert.fact} {one.alert.remedy}")


def _judge(state: RunState, *, has_notes: bool) -> Health:
    if state in UNHEALTHY:
        return Health.ERROR
    if has_notes:
        return Health.WARNING
    return Health.NEW if state is RunState.NEVER_RAN else Health.OK
