"""What a pipeline's rules are held against, measured without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from tidegate.core.alerts.failure import Failure, RunLook, read_failure
from tidegate.core.alerts.rules import Rules
from tidegate.core.alerts.waiting import NOTHING, Waiting, WaitingLook
from tidegate.core.checkpoint.log import find_commit_time
from tidegate.core.checkpoint.progress import Progress, read_progress
from tidegate.core.connection import ReadConnection, read_connection
from tidegate.core.errors import LedgerError, SourceAwayError, TidegateError
from tidegate.core.ledger import BatchRecord, Ledger
from tidegate.core.settings import Settings
from tidegate.core.spec.alerts import Rule
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.status import RunState, tell_state

_MOST_BATCHES = 100
"""Of a run with more of them, the newest are added up."""
_FRESH = timedelta(minutes=15)
_IN_ORDER = frozenset({RunState.IDLE, RunState.COMMITTED})
_OF_SOURCES = frozenset(
    {Rule.LAG_RECORDS, Rule.LAG_TIME, Rule.RETENTION_HEADROOM, Rule.NO_COMMIT_FOR}
)


@dataclass(frozen=True)
class NewestRun:
    """What the run that committed last did, as far as its batches tell."""

    run_id: str
    input_rows: int | None = None
    quarantined: int | None = None
    late_rows: int | None = None
    state_rows: int | None = None
    state_rows_before: int | None = None
    """How many rows the query remembered when the run began."""


@dataclass(frozen=True)
class Measures:
    """What was found of one pipeline; None is what does not apply to it."""

    failure: Failure | None = None
    newest: NewestRun | None = None
    waiting: Waiting = NOTHING
    silent_seconds: float | None = None
    """Since the newest commit, or since the first run was planned."""
    unknown: Mapping[Rule, str] = field(default_factory=dict)
    """The rules that nobody can judge right now, and why."""


@dataclass(frozen=True)
class Measurement:
    """Measures one pipeline."""

    pipeline: Pipeline
    settings: Settings
    rules: Rules
    connect: ReadConnection = read_connection
    away: set[str] = field(default_factory=set)
    """Connections whose service did not answer, and is not asked again."""
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def measure_run(self) -> Measures:
        """Measure whether the newest run failed, and nothing else."""
        unlooked = dict.fromkeys(set(Rule) - {Rule.FAILED_RUN}, "it was not looked at")
        return self._judge_run(self._look_at_run(self._progress), Measures(unknown=unlooked))

    def measure(self) -> Measures:
        """Measure all that there are rules for."""
        progress = self._progress
        look = self._look_at_run(progress)
        if look.run is None:
            return self._judge_run(look, Measures())
        committed_at = self._find_commit_time(progress)
        since = committed_at or datetime.fromisoformat(look.run.plan.planned_at)
        found = Measures(
            newest=self._sum_up(progress),
            silent_seconds=max(0.0, (self.now - since).total_seconds()),
        )
        return self._judge_run(look, self._look_at_sources(look, progress, since, found))

    @property
    def _progress(self) -> Progress:
        return read_progress(self.settings.checkpoint_of(self.pipeline.name))

    @property
    def _ledger(self) -> Ledger:
        return Ledger.beside(self.settings.state_of(self.pipeline.name))

    def _look_at_run(self, progress: Progress) -> RunLook:
        try:
            run = self._ledger.find_latest()
            state, reason = tell_state(
                run, progress, self.settings.checkpoint_of(self.pipeline.name)
            )
        except TidegateError as error:
            run, state, reason = None, RunState.UNKNOWN, str(error)
        return RunLook(self.pipeline, state, reason, run)

    def _judge_run(self, look: RunLook, found: Measures) -> Measures:
        noted = read_failure(self.settings.state_of(self.pipeline.name))
        verdict = look.judge(noted, self.now)
        undecided = {Rule.FAILED_RUN: verdict.undecided} if verdict.undecided else {}
        return replace(found, failure=verdict.failure, unknown={**found.unknown, **undecided})

    def _look_at_sources(
        self, look: RunLook, progress: Progress, since: datetime, found: Measures
    ) -> Measures:
        if self._is_fresh(look):
            return found
        asked = {source.connection for source in self.pipeline.kafka_inputs.values()}
        if asked & self.away:
            return replace(found, unknown=dict.fromkeys(_OF_SOURCES, "no broker answers"))
        parts = (self.pipeline, self.settings, progress, self.connect, self.now, since)
        try:
            return replace(found, waiting=WaitingLook(*parts).measure())
        except (TidegateError, OSError) as error:
            self.away.update(asked if isinstance(error, SourceAwayError) else ())
            return replace(found, unknown=dict.fromkeys(_OF_SOURCES, str(error)))

    def _is_fresh(self, look: RunLook) -> bool:
        """Whether all that waits came so lately that no rule can be broken by it.

        The newest run saw the end of the source and reached it. So a healthy pipeline costs a few
        small files to look at, and its landing zone is not listed; a broker is asked always.
        """
        if self.pipeline.kafka_inputs or look.run is None or look.state not in _IN_ORDER:
            return False
        age = self.now - datetime.fromisoformat(look.run.plan.planned_at)
        is_whole = not (look.run.attempt and look.run.attempt.stop)
        return is_whole and age < (self.rules.lag_time or _FRESH)

    def _find_commit_time(self, progress: Progress) -> datetime | None:
        batch = progress.committed_batch
        if batch is None:
            return None
        checkpoint = self.settings.checkpoint_of(self.pipeline.name)
        record = self._read_batch(batch)
        if record:
            return datetime.fromisoformat(record.committed_at)
        return find_commit_time(checkpoint, batch)

    def _read_batch(self, batch_id: int) -> BatchRecord | None:
        try:
            return self._ledger.read_batch(batch_id)
        except LedgerError:
            return None  # a record that is broken says nothing, and hides nothing else

    def _sum_up(self, progress: Progress) -> NewestRun | None:
        """Add up the newest batches of the run that committed last."""
        newest = progress.committed_batch
        last = None if newest is None else self._read_batch(newest)
        if newest is None or last is None:
            return None
        batches, before = [last], None
        for batch_id in range(newest - 1, max(-1, newest - _MOST_BATCHES), -1):
            before = self._read_batch(batch_id)
            if before is None or before.run_id != last.run_id:
                break
            batches.append(before)
            before = None
        return _add_up(batches, before)


def _add_up(batches: list[BatchRecord], before: BatchRecord | None) -> NewestRun:
    inputs = [batch.input_rows for batch in batches if batch.input_rows is not None]
    aside = [batch.quarantined for batch in batches if batch.quarantined is not None]
    last = batches[0].metrics
    return NewestRun(
        run_id=batches[0].run_id,
        input_rows=sum(inputs) if inputs else None,
        quarantined=sum(aside) if aside else None,
        late_rows=sum(batch.metrics.late_rows for batch in batches if batch.metrics),
        state_rows=last.state_rows if last else None,
        state_rows_before=before.metrics.state_rows if before and before.metrics else None,
    )
