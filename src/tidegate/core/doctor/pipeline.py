"""What is wrong with a pipeline: its checkpoint, its history, its sources and its sinks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial

from upath import UPath

from tidegate.core.checkpoint.progress import Progress, read_progress
from tidegate.core.checkpoint.statelog import list_state
from tidegate.core.connection import ReadConnection, read_connection
from tidegate.core.deltalog import DeltaLog
from tidegate.core.doctor.checkpoint import examine_checkpoint
from tidegate.core.doctor.fault import Fault, Severity
from tidegate.core.errors import LedgerError, SourceAwayError, TidegateError
from tidegate.core.lag import measure_lag
from tidegate.core.ledger import Ledger, Run
from tidegate.core.obstacles import (
    check_folder,
    check_history,
    check_restored,
    check_sources,
    check_table,
    list_unwritten,
)
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.source import DeltaSource
from tidegate.core.work.delta import find_log_headroom
from tidegate.core.work.finding import pick_source_ids
from tidegate.core.work.source import SourceLook

_LEAST_HEADROOM_SECONDS = 3600
_NEWEST_COMMITS = 1000
_LEAST_LOG_HEADROOM = timedelta(days=2)


def examine_pipeline(
    pipeline: Pipeline, settings: Settings, connect: ReadConnection = read_connection
) -> list[Fault]:
    """Find all that is wrong with a pipeline, or worth knowing."""
    checkpoint = settings.checkpoint_of(pipeline.name)
    faults = examine_checkpoint(checkpoint)
    progress = read_progress(checkpoint)
    if not progress.is_readable:
        return faults  # where source and sink should be is not known
    return [*faults, *_Exam(pipeline, settings, connect, progress).find_faults()]


class _Exam:
    """Holds a pipeline's history, sources and sinks against its checkpoint."""

    def __init__(
        self, pipeline: Pipeline, settings: Settings, connect: ReadConnection, progress: Progress
    ) -> None:
        self._pipeline = pipeline
        self._settings = settings
        self._connect = connect
        self._progress = progress
        self._checkpoint = str(settings.checkpoint_of(pipeline.name))
        self._ledger = Ledger.beside(settings.state_of(pipeline.name))

    def find_faults(self) -> Iterator[Fault]:
        """Find what is wrong."""
        try:
            latest = self._ledger.find_latest()
        except LedgerError as error:
            yield Fault.of(str(self._ledger.folder), error, "ledger_broken")
            latest = None
        if latest:
            check = partial(check_history, latest.left_at, self._progress)
            yield from self._try(self._checkpoint, check)
        yield from self._check_state()
        yield from self._check_sinks()
        compare = partial(check_sources, self._pipeline, self._progress)
        changed = list(self._try(self._checkpoint, compare))
        yield from changed
        if not changed:
            yield from self._check_sources(latest)

    def _try(self, file: str, check: Callable[[], object]) -> Iterator[Fault]:
        try:
            check()
        except SourceAwayError as error:
            yield Fault.of(file, error, "source_away")
        except TidegateError as error:
            yield Fault.of(file, error, "not_readable")

    @property
    def _skips(self) -> UPath:
        return self._settings.state_of(self._pipeline.name) / "skips"

    def _check_state(self) -> Iterator[Fault]:
        """Find state that is gone as a whole: then nothing in the checkpoint tells of it."""
        batch = self._progress.committed_batch
        recorded = None if batch is None else self._ledger.read_batch(batch)
        remembered = recorded.metrics.state_rows if recorded and recorded.metrics else 0
        checkpoint = self._settings.checkpoint_of(self._pipeline.name)
        if remembered and not list_state(checkpoint):
            yield Fault(
                "state_missing",
                Severity.ERROR,
                str(checkpoint / "state"),
                f"The query remembered {remembered:,} rows as of batch {batch}, and its state is gone. "
                "Spark would fail with STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY.",
                "Restore the checkpoint's state from a backup.",
            )

    def _check_sinks(self) -> Iterator[Fault]:
        new = list_unwritten(self._pipeline, self._progress, self._ledger)
        for sink in self._pipeline.delta_sinks:
            place, is_new = str(self._settings.locate(sink.table)), sink.name in new
            parts = (sink, self._settings, self._progress, self._skips)
            found = list(self._try(place, partial(check_table, *parts, is_new=is_new)))
            yield from found
            if not found and not is_new:
                check = partial(check_restored, *parts, looks=_NEWEST_COMMITS)
                yield from self._try(place, check)
        for files in self._pipeline.files_sinks:
            folder = self._settings.locate(files.path)
            check_it = partial(check_folder, folder, self._progress)
            yield from self._try(str(folder), check_it)

    def _check_sources(self, latest: Run | None) -> Iterator[Fault]:
        known_ids = latest.plan.source_ids if latest else {}
        looks = SourceLook(self._pipeline, self._settings, self._connect)
        for name, source in self._pipeline.inputs.items():
            ids = pick_source_ids(known_ids, name)
            look = partial(looks.look_at, name, source, self._progress, ids)
            found = list(self._try(f"source {name}", look))
            yield from found
            if not found and name in self._pipeline.kafka_inputs:
                yield from self._check_retention()
            elif not found and isinstance(source, DeltaSource):
                yield from self._check_log_retention(name, source)

    def _check_retention(self) -> Iterator[Fault]:
        for lag in measure_lag(self._pipeline, self._settings, self._connect):
            headroom = lag.headroom_seconds
            if headroom is None or headroom >= _LEAST_HEADROOM_SECONDS:
                continue
            partition = f"{lag.topic}-{lag.partition}"
            yield Fault(
                "retention_risk",
                Severity.WARNING,
                partition,
                f"The next record of {partition} is kept for {max(0, round(headroom / 60))} minutes "
                f"more, and {lag.lag_records:,} records wait.",
                "Run the pipeline soon, or lengthen retention.ms of the topic.",
            )

    def _check_log_retention(self, name: str, source: DeltaSource) -> Iterator[Fault]:
        position = self._progress.find_committed(name)
        log = DeltaLog(self._settings.locate(source.table))
        headroom = find_log_headroom(log, position) if position else None
        if headroom is None or headroom >= _LEAST_LOG_HEADROOM:
            return
        days = max(0.0, headroom.total_seconds() / 86400)
        yield Fault(
            "retention_risk",
            Severity.WARNING,
            str(log.table),
            f"The next version that is to be read of {log.table} is kept in its log for {days:.1f} days "
            "more; then the next clean-up deletes it.",
            "Run the pipeline soon, or lengthen delta.logRetentionDuration of the table.",
        )
