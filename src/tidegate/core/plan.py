"""Deciding, without a JVM, whether a run is needed and what it must reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from upath import UPath

from tidegate.core.checkpoint.position import SourceKind
from tidegate.core.checkpoint.progress import Progress, State, read_progress
from tidegate.core.connection import KafkaConnection, ReadConnection, read_connection
from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import (
    BlockedError,
    CheckpointError,
    ConnectionSpecError,
    LedgerError,
    SourceAwayError,
    SourceError,
)
from tidegate.core.filesink import find_newest_batch
from tidegate.core.ledger import Announcement, Baseline, Decision, Ledger, Plan, rank_batch
from tidegate.core.recovery import recover_batches
from tidegate.core.settings import Settings
from tidegate.core.spec.files import FilesSource
from tidegate.core.spec.kafka import KafkaSource
from tidegate.core.spec.pipeline import ONLY_SOURCE, Pipeline
from tidegate.core.spec.sinks.delta import DeltaSink
from tidegate.core.spec.source import DeltaSource, RateSource, Source, SparkSource
from tidegate.core.target import BatchTarget, DrainTarget, find_shortfall
from tidegate.core.work.delta import find_new_versions
from tidegate.core.work.files import find_new_files
from tidegate.core.work.finding import Finding, combine_findings, pick_source_ids
from tidegate.core.work.kafka import KafkaWork


def plan_run(
    pipeline: Pipeline,
    settings: Settings,
    run_id: str,
    *,
    announced: Announcement | None = None,
    accepts_loss: bool = False,
    connect: ReadConnection = read_connection,
) -> Plan:
    """Plan a run and open it in the ledger; what no retry can mend is recorded as blocked."""
    planner = _Planner(pipeline, settings, announced, accepts_loss, connect)
    plan = Plan(
        run_id=run_id,
        decision=Decision.BLOCKED,
        reason="",
        planned_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        announced=announced,
        accepts_loss=accepts_loss,
    )
    ledger = Ledger.beside(settings.state_of(pipeline.name))
    try:
        plan = planner.decide(plan, ledger)
    except LedgerError as error:
        # Not recorded: a new file would hide the broken one, and what the last run left with it.
        return replace(plan, reason=str(error))
    return ledger.open_run(plan)


@dataclass(frozen=True)
class _Planner:
    """Looks at source, checkpoint and sink of one pipeline."""

    pipeline: Pipeline
    settings: Settings
    announced: Announcement | None
    accepts_loss: bool
    connect: ReadConnection

    def decide(self, plan: Plan, ledger: Ledger) -> Plan:
        progress = read_progress(self._checkpoint)
        baseline = Baseline(progress.query_id, progress.committed_batch)
        latest = ledger.find_latest()
        known_ids = latest.plan.source_ids if latest else {}
        known = latest.left_at if latest else baseline
        try:
            if latest:
                recover_batches(self.pipeline, self.settings, latest.plan, progress)
                known = known.extend(baseline)
            _check_history(known, progress)
            finding = self._find_work(progress, known_ids, ledger)
        except (BlockedError, CheckpointError, SourceError, ConnectionSpecError) as error:
            # What stands there now may be the very thing that is wrong: keep what was known.
            return replace(
                plan,
                reason=str(error),
                baseline=known,
                source_ids=known_ids,
                is_passing=isinstance(error, SourceAwayError),
            )
        decision = Decision.RUN if finding.target else Decision.IDLE
        if decision is Decision.IDLE:
            finding = self._include_unannounced(finding, progress)
        return replace(
            plan,
            decision=decision,
            reason=finding.reason,
            target=finding.target,
            baseline=baseline,
            warning=finding.warning,
            source_ids=dict(finding.source_ids),
        )

    @property
    def _checkpoint(self) -> UPath:
        return self.settings.checkpoint_of(self.pipeline.name)

    def _find_work(
        self, progress: Progress, known_ids: Mapping[str, str], ledger: Ledger
    ) -> Finding:
        _check_checkpoint(self.pipeline, progress)
        new = _find_new_sinks(self.pipeline, progress, ledger)
        for sink in self.pipeline.delta_sinks:
            _check_sink(sink, self.settings, progress, is_new=sink.name in new)
        for folder in self.pipeline.files_sinks:
            _check_folder(self.settings.locate(folder.path), progress)
        finding = _include_pending(
            self._find_new_data(progress, known_ids), progress, self._checkpoint
        )
        if not new:
            return finding
        told = f"new sinks get rows from here on, none of earlier batches: {', '.join(new)}"
        warning = f"{finding.warning}; {told}" if finding.warning else told
        return replace(finding, warning=warning)

    def _find_new_data(self, progress: Progress, known_ids: Mapping[str, str]) -> Finding:
        return combine_findings(
            {
                name: self._look_at(name, source, progress, pick_source_ids(known_ids, name))
                for name, source in self.pipeline.inputs.items()
            }
        )

    def _look_at(
        self, name: str, source: Source, progress: Progress, known_ids: Mapping[str, str]
    ) -> Finding:
        checkpoint = self._checkpoint
        match source:
            case FilesSource():
                return find_new_files(name, source, self.settings, progress, checkpoint)
            case DeltaSource():
                return find_new_versions(name, source, self.settings, progress, checkpoint)
            case KafkaSource():
                options = self.connect(source.connection)
                connection = KafkaConnection.from_options(source.connection, options)
                return KafkaWork(
                    *(self.pipeline.name, name, source, connection, progress, checkpoint),
                    *(known_ids, self.accepts_loss),
                ).find()
            case SparkSource(format=kind):
                return Finding(
                    f"only Spark knows where a source of format {kind} ends", DrainTarget(name)
                )
            case RateSource():
                batch = rank_batch(progress.committed_batch) + 1
                return Finding("a rate source always has more", BatchTarget(batch))

    def _include_unannounced(self, finding: Finding, progress: Progress) -> Finding:
        """Let confirm tell downstream of commits whose own run never got that far."""
        batch = progress.committed_batch
        if self.announced is None or batch is None:
            return finding
        if rank_batch(self.announced.find_batch(progress.query_id)) >= batch:
            return finding
        reason = f"{finding.reason}; batch {batch} was never announced downstream"
        return replace(finding, reason=reason, target=BatchTarget(batch))


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


def _check_checkpoint(pipeline: Pipeline, progress: Progress) -> None:
    """Refuse a checkpoint from which the query could not go on, or would lose rows."""
    if not progress.is_readable or progress.obstacle:
        raise BlockedError(progress.problem or progress.obstacle or "")
    found = {source.source: source.kind for source in progress.sources}
    wanted = {name: _tell_kind(source) for name, source in pipeline.inputs.items()}
    # What a position of any other format looks like is not known, so its kind tells nothing.
    expected = {n: k if k is not SourceKind.UNKNOWN else found.get(n) for n, k in wanted.items()}
    if found and found != expected:
        raise BlockedError(
            f"The checkpoint was reading {_tell_sources(found)}, and the spec says "
            f"{_tell_sources(wanted)}.",
            cause="The source of the pipeline was changed.",
            remedy="Give the changed pipeline a new name, and so a checkpoint of its own.",
        )


def _tell_kind(source: Source) -> SourceKind:
    return SourceKind.UNKNOWN if isinstance(source, SparkSource) else SourceKind(source.type)


def _tell_sources(kinds: Mapping[str, SourceKind]) -> str:
    return ", ".join(
        kind if name == ONLY_SOURCE else f"{name} ({kind})" for name, kind in sorted(kinds.items())
    )


def _find_new_sinks(pipeline: Pipeline, progress: Progress, ledger: Ledger) -> list[str]:
    """Find sinks that the spec did not have when the newest batch was committed."""
    batch = progress.committed_batch
    recorded = ledger.read_batch(batch) if batch is not None else None
    if recorded is None or not recorded.sinks:
        return []
    return [sink.name for sink in pipeline.sinks if sink.name not in recorded.sinks]


def _check_sink(sink: DeltaSink, settings: Settings, progress: Progress, *, is_new: bool) -> None:
    """Refuse a table that is not the one which the query wrote to, or that is ahead of it."""
    if sink.route_by:
        return  # its tables come and go with the rows
    log = DeltaLog(settings.locate(sink.table))
    newest = log.find_version()
    if newest is None:
        written = None
    elif progress.query_id is None:
        return
    else:
        written = log.find_transaction(newest, sink.name_writer(progress.query_id))
    if written is None and progress.committed_batch is not None and not is_new:
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


def _check_folder(folder: UPath, progress: Progress) -> None:
    written, planned = find_newest_batch(folder), rank_batch(progress.planned_batch)
    if written is not None and written > planned:
        raise BlockedError(
            f"The log of files in {folder} holds batch {written}, and the checkpoint knows batches "
            f"up to {planned} only: the next ones would be skipped as already written.",
            cause="The checkpoint is another one, was set back, or its logs were deleted.",
            remedy="Restore it from a backup, or give the sink a folder of its own.",
        )


def _include_pending(finding: Finding, progress: Progress, checkpoint: UPath) -> Finding:
    """Make sure that a pending batch is committed, even if its data was committed before."""
    if progress.state is not State.PENDING or progress.planned_batch is None:
        return finding
    if finding.target and find_shortfall(finding.target, progress, checkpoint):
        return finding
    reason = f"batch {progress.planned_batch} is pending"
    return replace(finding, reason=reason, target=BatchTarget(progress.planned_batch))
