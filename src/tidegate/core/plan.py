"""Deciding, without a JVM, whether a run is needed and what it must reach."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from upath import UPath

from tidegate.core.checkpoint.filelog import read_file_log
from tidegate.core.checkpoint.progress import Progress, State, read_progress
from tidegate.core.deltalog import DeltaLog
from tidegate.core.ends.files import find_backlog, list_landing
from tidegate.core.errors import BlockedError, SourceError
from tidegate.core.ledger import Baseline, Decision, Ledger, Plan
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.source import DeltaSource, FilesSource, RateSource
from tidegate.core.target import BatchTarget, DeltaTarget, FilesTarget, Target

_SOURCE = "0"


@dataclass(frozen=True)
class Finding:
    """What is to be done, and why."""

    reason: str
    target: Target | None = None
    """None where there is nothing to do."""


def plan_run(pipeline: Pipeline, settings: Settings, run_id: str) -> Plan:
    """Plan a run and open it in the ledger; what no retry can mend is recorded as blocked."""
    checkpoint = settings.checkpoint_of(pipeline.name)
    progress = read_progress(checkpoint)
    baseline = Baseline(progress.query_id, progress.committed_batch)
    decision, finding = _decide(pipeline, settings, progress, checkpoint)
    plan = Plan(
        run_id=run_id,
        decision=decision,
        reason=finding.reason,
        planned_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        target=finding.target,
        baseline=baseline,
    )
    return Ledger.beside(settings.state_of(pipeline.name)).open_run(plan)


def _decide(
    pipeline: Pipeline, settings: Settings, progress: Progress, checkpoint: UPath
) -> tuple[Decision, Finding]:
    try:
        if not progress.is_readable:
            raise BlockedError(progress.problem or f"{checkpoint} cannot be judged.")
        finding = _find_work(pipeline, settings, progress, checkpoint)
    except (BlockedError, SourceError) as error:
        return Decision.BLOCKED, Finding(str(error))
    return (Decision.RUN if finding.target else Decision.IDLE), finding


def _find_work(
    pipeline: Pipeline, settings: Settings, progress: Progress, checkpoint: UPath
) -> Finding:
    match pipeline.source:
        case FilesSource() as source:
            return _find_new_files(source, settings, progress, checkpoint)
        case DeltaSource() as source:
            return _find_new_versions(source, settings, progress)
        case RateSource():
            batch = (progress.committed_batch if progress.committed_batch is not None else -1) + 1
            return Finding("a rate source always has more", BatchTarget(batch))


def _find_new_files(
    source: FilesSource, settings: Settings, progress: Progress, checkpoint: UPath
) -> Finding:
    landed = list_landing(settings.locate(source.path), source)
    committed = progress.sources[0].committed if progress.sources else None
    backlog = find_backlog(
        landed,
        read_file_log(checkpoint, _SOURCE),
        committed_offset=-1 if committed is None else committed["logOffset"],
        max_age_ms=int(source.max_file_age.total_seconds() * 1000),
    )
    ignored = (
        f"; {backlog.too_old:,} files are older than max_file_age and will never be read"
        if backlog.too_old
        else ""
    )
    if not backlog.paths:
        return Finding(f"no new files among {len(landed):,}{ignored}")
    return Finding(
        f"{len(backlog.paths):,} files to read{_mention_pending(progress)}{ignored}",
        FilesTarget(backlog.paths),
    )


def _find_new_versions(source: DeltaSource, settings: Settings, progress: Progress) -> Finding:
    log = DeltaLog(settings.locate(source.table))
    newest = log.require_version()
    position = progress.sources[0].committed if progress.sources else None
    if position is None:
        not_yet = _find_start_ahead(source, log, newest)
        return Finding(not_yet) if not_yet else _read_up_to(newest, progress)
    _check_same_table(log, newest, position["reservoirId"])
    is_read = position["reservoirVersion"] > newest and not position.get("isStartingVersion")
    if is_read and progress.state is not State.PENDING:
        return Finding(f"the table is read up to its newest version, {newest}")
    return _read_up_to(newest, progress)


def _read_up_to(version: int, progress: Progress) -> Finding:
    return Finding(
        f"the table is at version {version}{_mention_pending(progress)}", DeltaTarget(version)
    )


def _find_start_ahead(source: DeltaSource, log: DeltaLog, newest: int) -> str | None:
    if source.starting_version is not None and source.starting_version > newest:
        return f"starting_version {source.starting_version} is not there yet; newest is {newest}"
    if source.starting_timestamp is not None:
        committed_ms = log.read_commit(newest).timestamp_ms
        if source.starting_timestamp.timestamp() * 1000 > committed_ms:
            return f"nothing was committed since starting_timestamp {source.starting_timestamp}"
    return None


def _check_same_table(log: DeltaLog, version: int, known_id: str) -> None:
    table_id = log.read_table_id(version)
    if table_id != known_id:
        raise BlockedError(
            f"The table {log.table} has id {table_id}, and the checkpoint was reading {known_id}.",
            cause="The table was deleted and created anew.",
            remedy="Give the pipeline a fresh checkpoint to read the new table from its start.",
        )


def _mention_pending(progress: Progress) -> str:
    return f", batch {progress.planned_batch} is pending" if progress.state is State.PENDING else ""
