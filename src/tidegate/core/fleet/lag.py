"""How far a pipeline is behind, as its newest plan and its commits tell it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.core.checkpoint.filelog import strip_scheme
from tidegate.core.checkpoint.position import SourceKind, classify_position
from tidegate.core.ledger import Plan
from tidegate.core.target import AllTargets, DeltaTarget, FilesTarget, KafkaTarget, Target
from tidegate.core.waiting import Unit, Waiting


@dataclass(frozen=True)
class Lag:
    """What waits for a pipeline, as of a moment."""

    unit: Unit
    count: int
    seconds: float | None
    """The age of the oldest that waits; 0 where nothing does."""
    headroom_seconds: float | None
    """How long that one is kept at the least; None where nothing waits or expires."""
    measured_at: str


def tell_planned_lag(plan: Plan) -> Lag | None:
    """Tell what waited when a run was planned; of several sources, the one that is worst off."""
    if not plan.waiting:
        return None
    worst = max(plan.waiting.values(), key=_rank)
    seconds = worst.oldest_seconds if worst.count else 0.0
    return Lag(worst.unit, worst.count, seconds, worst.headroom_seconds, plan.planned_at)


def tell_lag(plan: Plan, committed_at: str | None, *, is_reached: bool) -> Lag | None:
    """Tell what waits now, as far as the ledger knows: nothing once a run reached its target."""
    lag = tell_planned_lag(plan)
    if lag is None or not is_reached or committed_at is None:
        return lag
    return Lag(lag.unit, 0, 0.0, None, max(committed_at, lag.measured_at))


FileOffsets = Mapping[str, Mapping[str, int]]
"""The number that each file has in the log of its source, by source."""


def count_left(target: Target | None, ends: Mapping[str, Any], files: FileOffsets) -> int | None:
    """Count what a batch left of a run's target; None where its end does not tell.

    `ends` are where the batch ended, by source. A file source's end is a number of its own log, which
    tells only together with that log.
    """
    targets = target.targets if isinstance(target, AllTargets) else (target,)
    counts = [_count_one(one, ends.get(getattr(one, "source", "")), files) for one in targets]
    return None if None in counts else sum(count or 0 for count in counts)


def _count_one(target: Target | None, end: Any, files: FileOffsets) -> int | None:
    match target, classify_position(end):
        case FilesTarget(), SourceKind.FILES if target.source in files:
            logged, reached = files[target.source], int(end["logOffset"])
            return sum(
                logged.get(strip_scheme(path), reached + 1) > reached for path in target.paths
            )
        case KafkaTarget(), SourceKind.KAFKA:
            return sum(
                max(0, wanted - int(end.get(topic, {}).get(number, 0)))
                for topic, numbers in target.offsets.items()
                for number, wanted in numbers.items()
            )
        case DeltaTarget(), SourceKind.DELTA:
            following = end["reservoirVersion"] + bool(end.get("isStartingVersion"))
            return max(0, target.version + 1 - int(following))
        case _:
            return None


def _rank(waiting: Waiting) -> tuple[float, int]:
    return waiting.oldest_seconds or 0.0, waiting.count
