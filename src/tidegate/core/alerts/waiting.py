"""What a pipeline has yet to read: how much, since when, and for how long it is kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from tidegate.core.checkpoint.progress import Progress
from tidegate.core.connection import ReadConnection
from tidegate.core.deltalog import DeltaLog
from tidegate.core.ends.files import list_landing
from tidegate.core.lag import PartitionLag, measure_lag
from tidegate.core.settings import Settings
from tidegate.core.spec.files import FilesSource
from tidegate.core.spec.kafka import KafkaSource
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.source import DeltaSource, Source
from tidegate.core.target import FilesTarget
from tidegate.core.work.delta import find_log_headroom, find_next_version
from tidegate.core.work.source import SourceLook


@dataclass(frozen=True)
class Waiting:
    """What waits in one source or in all of them."""

    is_any: bool | None
    """None where only Spark knows."""
    records: int | None = None
    """Counted in Kafka alone."""
    seconds: float | None = None
    """For how long the oldest of it has waited."""
    kept_seconds: float | None = None
    """How much longer the next of it is kept at the least; None where nothing expires."""
    retention_seconds: float | None = None
    """How long the source keeps things, where that is what limits it."""


NOTHING = Waiting(is_any=False)


def combine_waiting(found: Iterable[Waiting]) -> Waiting:
    """Take the worst of several sources."""
    parts = list(found)
    known = [part.is_any for part in parts]
    records = [part.records for part in parts if part.records is not None]
    kept = [part for part in parts if part.kept_seconds is not None]
    scarcest = min(kept, key=lambda part: part.kept_seconds or 0.0, default=NOTHING)
    return Waiting(
        is_any=True if True in known else None if None in known else False,
        records=sum(records) if records else None,
        seconds=max((part.seconds for part in parts if part.seconds is not None), default=None),
        kept_seconds=scarcest.kept_seconds,
        retention_seconds=scarcest.retention_seconds,
    )


@dataclass(frozen=True)
class WaitingLook:
    """Looks at the sources of a pipeline for what waits in them."""

    pipeline: Pipeline
    settings: Settings
    progress: Progress
    connect: ReadConnection
    now: datetime
    since: datetime
    """When all was last seen to be read, or the first run was planned: nothing waits for longer."""

    def measure(self) -> Waiting:
        """Find what waits in all sources; raise what keeps one from being looked at."""
        kafka = measure_lag(self.pipeline, self.settings, self.connect)
        others = (
            self._look_at(name, source)
            for name, source in self.pipeline.inputs.items()
            if not isinstance(source, KafkaSource)
        )
        return combine_waiting([*map(_weigh, kafka), *others])

    def _look_at(self, name: str, source: Source) -> Waiting:
        looks = SourceLook(self.pipeline, self.settings, self.connect)
        target = looks.look_at(name, source, self.progress, {}).target
        match source, target:
            case _, None:
                return NOTHING
            case FilesSource(), FilesTarget():
                return Waiting(is_any=True, seconds=self._age(self._find_oldest(source, target)))
            case DeltaSource(), _:
                return self._look_at_table(name, source)
        return Waiting(is_any=None)

    def _find_oldest(self, source: FilesSource, target: FilesTarget) -> datetime:
        landed = list_landing(self.settings.locate(source.path), source, was_read=True)
        waiting = set(target.paths)
        times = (file.modified_ms for file in landed if file.path in waiting)
        return datetime.fromtimestamp(min(times, default=0) / 1000, UTC)

    def _look_at_table(self, name: str, source: DeltaSource) -> Waiting:
        log = DeltaLog(self.settings.locate(source.table))
        position = self.progress.find_committed(name)
        if position is None:
            return Waiting(is_any=True, seconds=self._age(self.since))
        newest = log.require_version()
        written = log.read_commit(min(find_next_version(position), newest)).timestamp_ms
        kept = find_log_headroom(log, position)
        return Waiting(
            is_any=True,
            seconds=self._age(datetime.fromtimestamp(written / 1000, UTC)),
            kept_seconds=kept.total_seconds() if kept else None,
            retention_seconds=log.read_retention(newest).total_seconds(),
        )

    def _age(self, at: datetime) -> float:
        return max(0.0, (self.now - max(at, self.since)).total_seconds())


def _weigh(lag: PartitionLag) -> Waiting:
    kept, age = lag.headroom_seconds, lag.lag_seconds
    return Waiting(
        is_any=lag.lag_records > 0,
        records=lag.lag_records,
        seconds=age if lag.lag_records else None,
        kept_seconds=kept,
        retention_seconds=None if kept is None or age is None else kept + age,
    )
