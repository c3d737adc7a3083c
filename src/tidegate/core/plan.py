"""Deciding, without a JVM, whether a run is needed and what it must reach."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from upath import UPath

from tidegate.core.checkpoint.filelog import read_file_log
from tidegate.core.checkpoint.position import SourceKind
from tidegate.core.checkpoint.progress import Progress, State, read_progress
from tidegate.core.deltalog import DeltaLog
from tidegate.core.ends.files import Backlog, find_backlog, list_landing, refuse_patterns
from tidegate.core.errors import BlockedError, CheckpointError, LedgerError, SourceError
from tidegate.core.ledger import Baseline, Decision, Ledger, Plan, rank_batch
from tidegate.core.recovery import recover_batches
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.sink import DeltaSink
from tidegate.core.spec.source import DeltaSource, FilesSource, RateSource
from tidegate.core.target import BatchTarget, DeltaTarget, FilesTarget, Target, find_shortfall

_SOURCE = "0"


@dataclass(frozen=True)
class Finding:
    """What is to be done, and why."""

    reason: str
    target: Target | None = None
    """None where there is nothing to do."""
    warning: str | None = None


def plan_run(pipeline: Pipeline, settings: Settings, run_id: str) -> Plan:
    """Plan a run and open it in the ledger; what no retry can mend is recorded as blocked."""
    checkpoint = settings.checkpoint_of(pipeline.name)
    ledger = Ledger.beside(settings.state_of(pipeline.name))
    progress = read_progress(checkpoint)
    baseline = Baseline(progress.query_id, progress.committed_batch)
    try:
        known = _recall_end(pipeline, settings, ledger) or baseline
        _check_history(known, progress)
        finding = _find_work(pipeline, settings, progress, checkpoint)
        decision = Decision.RUN if finding.target else Decision.IDLE
        if decision is Decision.IDLE:
            finding = _include_unannounced(finding, ledger, progress)
    except LedgerError as error:
        decision, finding = Decision.BLOCKED, Finding(str(error))
    except (BlockedError, CheckpointError, SourceError) as error:
        decision, finding = Decision.BLOCKED, Finding(str(error))
        # What stands there now may be the very thing that is wrong: keep what the last run left.
        baseline = known
    plan = Plan(
        run_id=run_id,
        decision=decision,
        reason=finding.reason,
        planned_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        target=finding.target,
        baseline=baseline,
        warning=finding.warning,
    )
    return ledger.open_run(plan)


def _recall_end(pipeline: Pipeline, settings: Settings, ledger: Ledger) -> Baseline | None:
    """Find where the last run left the checkpoint, once all that it committed is written down."""
    latest = ledger.find_latest()
    if latest is None:
        return None
    recover_batches(pipeline, settings, latest.plan)
    return ledger.read_run(latest.plan.run_id).left_at


def _include_unannounced(finding: Finding, ledger: Ledger, progress: Progress) -> Finding:
    """Let confirm tell downstream of commits whose own run never got that far."""
    if progress.committed_batch is None:
        return finding
    told = ledger.find_announcement()
    told_batch = told.batch_id if told and told.query_id == progress.query_id else None
    if rank_batch(told_batch) >= progress.committed_batch:
        return finding
    reason = f"{finding.reason}; batch {progress.committed_batch} was never announced downstream"
    return replace(finding, reason=reason, target=BatchTarget(progress.committed_batch))


def _find_work(
    pipeline: Pipeline, settings: Settings, progress: Progress, checkpoint: UPath
) -> Finding:
    _check_checkpoint(pipeline, settings, progress)
    finding = _find_new_data(pipeline, settings, progress, checkpoint)
    return _include_pending(finding, progress, checkpoint)


def _check_history(known: Baseline, progress: Progress) -> None:
    """Refuse a checkpoint that is not the one of the last run: reading anew would double rows."""
    if not progress.is_readable:
        return  # told in its own words
    is_other = known.query_id is not None and progress.query_id != known.query_id
    if is_other or rank_batch(progress.committed_batch) < rank_batch(known.committed_batch):
        raise BlockedError(
            f"The checkpoint is at batch {progress.committed_batch} of query {progress.query_id}, "
            f"and the last run left it at batch {known.committed_batch} of query {known.query_id}.",
            cause="It was deleted, set back or replaced; read anew, rows would be written twice.",
            remedy="Restore it from a backup. To read all anew, delete the pipeline's whole state "
            "folder and its table.",
        )


def _check_checkpoint(pipeline: Pipeline, settings: Settings, progress: Progress) -> None:
    """Refuse a checkpoint from which the query could not go on, or would lose rows."""
    if not progress.is_readable or progress.obstacle:
        raise BlockedError(progress.problem or progress.obstacle or "")
    kinds = [source.kind for source in progress.sources]
    if kinds and kinds != [SourceKind(pipeline.source.type)]:
        raise BlockedError(
            f"The checkpoint was reading {', '.join(kinds)}, and the spec says "
            f"{pipeline.source.type}.",
            cause="The source of the pipeline was changed.",
            remedy="Give the changed pipeline a new name, and so a checkpoint of its own.",
        )
    _check_sink(pipeline.sinks[0], settings, progress)


def _check_sink(sink: DeltaSink, settings: Settings, progress: Progress) -> None:
    log = DeltaLog(settings.locate(sink.table))
    newest = log.find_version()
    if newest is None:
        written = None
    elif progress.query_id is None:
        return
    else:
        written = log.find_transaction(newest, sink.name_writer(progress.query_id))
    if written is None and progress.committed_batch is not None:
        raise BlockedError(
            f"The table {log.table} holds no batch of this query, and the checkpoint is at batch "
            f"{progress.committed_batch}.",
            cause="The table was deleted or replaced, or the spec names another one.",
            remedy="Restore the table. To write all anew, delete the pipeline's whole state folder.",
        )
    planned = -1 if progress.planned_batch is None else progress.planned_batch
    if written is not None and written > planned:
        raise BlockedError(
            f"The table {log.table} holds batch {written} of this query, and the checkpoint knows "
            f"batches up to {planned} only: the next ones would be skipped as already written.",
            cause="The checkpoint was set back or its logs were deleted.",
            remedy="Restore it from a backup. To read all anew, delete the pipeline's whole state "
            "folder and its table.",
        )


def _include_pending(finding: Finding, progress: Progress, checkpoint: UPath) -> Finding:
    """Make sure that a pending batch is committed, even if its data was committed before."""
    if progress.state is not State.PENDING or progress.planned_batch is None:
        return finding
    if finding.target and find_shortfall(finding.target, progress, checkpoint):
        return finding
    reason = f"batch {progress.planned_batch} is pending"
    return Finding(reason, BatchTarget(progress.planned_batch), finding.warning)


def _find_new_data(
    pipeline: Pipeline, settings: Settings, progress: Progress, checkpoint: UPath
) -> Finding:
    match pipeline.source:
        case FilesSource() as source:
            return _find_new_files(source, settings, progress, checkpoint)
        case DeltaSource() as source:
            return _find_new_versions(source, settings, progress, checkpoint)
        case RateSource():
            batch = (progress.committed_batch if progress.committed_batch is not None else -1) + 1
            return Finding("a rate source always has more", BatchTarget(batch))


def _find_new_files(
    source: FilesSource, settings: Settings, progress: Progress, checkpoint: UPath
) -> Finding:
    folder = settings.locate(source.path)
    committed = progress.sources[0].committed if progress.sources else None
    landed = list_landing(folder, source, was_read=committed is not None)
    committed_offset = -1 if committed is None else committed["logOffset"]
    backlog = find_backlog(
        landed,
        read_file_log(checkpoint, _SOURCE, up_to=committed_offset),
        committed_offset=committed_offset,
        max_age_ms=int(source.max_file_age.total_seconds() * 1000),
    )
    refuse_patterns(backlog.paths, folder.path)
    _refuse_lost_files(backlog)
    warning = _describe_ignored(backlog)
    if not backlog.paths:
        return Finding(f"no new files among {len(landed):,}", warning=warning)
    return Finding(
        f"{len(backlog.paths):,} files to read{_mention_pending(progress)}",
        FilesTarget(backlog.paths, since=committed_offset),
        warning,
    )


def _refuse_lost_files(backlog: Backlog) -> None:
    if backlog.lost:
        raise BlockedError(
            f"{len(backlog.lost):,} files of a batch that is not committed are gone, such as "
            f"{backlog.lost[0]}.",
            cause="Spark would commit the batch without them, and never read them again.",
            remedy="Put them back, then run again.",
        )


def _describe_ignored(backlog: Backlog) -> str | None:
    told = {
        "older than max_file_age and will never be read": backlog.too_old,
        "overwritten after they were read and will not be read again": backlog.overwritten,
    }
    return "; ".join(f"{count:,} files are {what}" for what, count in told.items() if count) or None


def _find_new_versions(
    source: DeltaSource, settings: Settings, progress: Progress, checkpoint: UPath
) -> Finding:
    log = DeltaLog(settings.locate(source.table))
    newest = log.require_version()
    position = progress.sources[0].committed if progress.sources else None
    if position is None:
        not_yet = _find_start_ahead(source, log, newest)
        if not_yet:
            return Finding(not_yet)
    else:
        _check_same_table(log, newest, position["reservoirId"])
    target = DeltaTarget(newest, last_index=_find_last_index(source, log, newest))
    if find_shortfall(target, progress, checkpoint) is None:
        return Finding(f"the table is read up to its newest version, {newest}")
    return Finding(f"the table is at version {newest}{_mention_pending(progress)}", target)


def _find_last_index(source: DeltaSource, log: DeltaLog, version: int) -> int | None:
    # A version with recorded changes is taken whole, and the position stays at its last file.
    changes = log.read_commit(version).change_files if source.change_data_feed else 0
    return changes - 1 if changes else None


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
            remedy="Give the pipeline a new name and a new table to read it from its start.",
        )


def _mention_pending(progress: Progress) -> str:
    return f", batch {progress.planned_batch} is pending" if progress.state is State.PENDING else ""
