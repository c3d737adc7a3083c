"""Deciding, without a JVM, whether a run is needed and what it must reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from upath import UPath

from tidegate.core.checkpoint.progress import Progress, State, read_progress
from tidegate.core.connection import ReadConnection, read_connection
from tidegate.core.errors import (
    BlockedError,
    CheckpointError,
    ConnectionSpecError,
    LedgerError,
    SourceAwayError,
    SourceError,
    TidegateError,
)
from tidegate.core.lag import measure_waiting
from tidegate.core.ledger import Announcement, Baseline, Decision, Ledger, Plan, rank_batch
from tidegate.core.obstacles import (
    check_checkpoint,
    check_cut_off,
    check_folder,
    check_history,
    check_pending_rules,
    check_restored,
    check_sources,
    check_table,
    find_new_sinks,
    list_unwritten,
)
from tidegate.core.recovery import recover_batches
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.target import BatchTarget, find_shortfall
from tidegate.core.waiting import Waiting
from tidegate.core.work.finding import Finding, combine_findings, pick_source_ids
from tidegate.core.work.source import SourceLook

_NEWEST_COMMITS = 5
"""Of a table that others write to as well, so many are looked at for one that set it back."""


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
            check_cut_off(self._checkpoint)
            check_history(known, progress)
            finding = self._find_work(progress, known_ids, ledger)
            if finding.target:
                check_checkpoint(self._checkpoint)
                self._check_restored(progress, ledger)
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
            tables=self._list_tables(),
            source_ids=dict(finding.source_ids),
            waiting={**finding.waiting, **self._measure_waiting(finding)},
        )

    def _measure_waiting(self, finding: Finding) -> dict[str, Waiting]:
        """Find how old the records are that wait, where there are any; a driver starts anyway."""
        if not any(finding.waiting[name].count for name in self.pipeline.kafka_inputs):
            return {}
        try:
            return measure_waiting(self.pipeline, self.settings, self.connect)
        except TidegateError:
            return {}  # their number is known, and their age is no reason to fail

    def _list_tables(self) -> dict[str, str]:
        # Those of a routed sink come and go with the rows.
        sinks = (sink for sink in self.pipeline.delta_sinks if not sink.route_by)
        return {sink.name: str(self.settings.locate(sink.table)) for sink in sinks}

    def _check_restored(self, progress: Progress, ledger: Ledger) -> None:
        unwritten = list_unwritten(self.pipeline, progress, ledger)
        for sink in self.pipeline.delta_sinks:
            if sink.name not in unwritten:
                check_restored(sink, self.settings, progress, self._skips, looks=_NEWEST_COMMITS)

    @property
    def _skips(self) -> UPath:
        return self.settings.state_of(self.pipeline.name) / "skips"

    @property
    def _checkpoint(self) -> UPath:
        return self.settings.checkpoint_of(self.pipeline.name)

    def _find_work(
        self, progress: Progress, known_ids: Mapping[str, str], ledger: Ledger
    ) -> Finding:
        check_sources(self.pipeline, progress)
        new = find_new_sinks(self.pipeline, progress, ledger)
        unwritten = list_unwritten(self.pipeline, progress, ledger)
        for sink in self.pipeline.delta_sinks:
            is_new = sink.name in unwritten
            check_table(sink, self.settings, progress, self._skips, is_new=is_new)
        for folder in self.pipeline.files_sinks:
            check_folder(self.settings.locate(folder.path), progress)
        check_pending_rules(self.pipeline, self.settings, progress, ledger)
        finding = _include_pending(
            self._find_new_data(progress, known_ids), progress, self._checkpoint
        )
        if not new:
            return finding
        told = f"new sinks get rows from here on, none of earlier batches: {', '.join(new)}"
        warning = f"{finding.warning}; {told}" if finding.warning else told
        return replace(finding, warning=warning)

    def _find_new_data(self, progress: Progress, known_ids: Mapping[str, str]) -> Finding:
        looks = SourceLook(self.pipeline, self.settings, self.connect, self.accepts_loss)
        return combine_findings(
            {
                name: looks.look_at(name, source, progress, pick_source_ids(known_ids, name))
                for name, source in self.pipeline.inputs.items()
            }
        )

    def _include_unannounced(self, finding: Finding, progress: Progress) -> Finding:
        """Let confirm tell downstream of commits whose own run never got that far."""
        batch = progress.committed_batch
        if self.announced is None or batch is None:
            return finding
        if rank_batch(self.announced.find_batch(progress.query_id)) >= batch:
            return finding
        reason = f"{finding.reason}; batch {batch} was never announced downstream"
        return replace(finding, reason=reason, target=BatchTarget(batch))


def _include_pending(finding: Finding, progress: Progress, checkpoint: UPath) -> Finding:
    """Make sure that a pending batch is committed, even if its data was committed before."""
    if progress.state is not State.PENDING or progress.planned_batch is None:
        return finding
    if finding.target and find_shortfall(finding.target, progress, checkpoint):
        return finding
    reason = f"batch {progress.planned_batch} is pending"
    return replace(finding, reason=reason, target=BatchTarget(progress.planned_batch))
