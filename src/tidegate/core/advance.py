"""How much of a run's target is done, while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from upath import UPath

from tidegate.core.checkpoint.log import read_initial_offsets
from tidegate.core.checkpoint.progress import Progress
from tidegate.core.duration import spell_seconds
from tidegate.core.target import (
    AllTargets,
    DeltaTarget,
    FilesTarget,
    KafkaTarget,
    Target,
    list_missing_files,
)


@dataclass(frozen=True)
class Advance:
    """What of one source is committed, of what there was when the run was planned."""

    done: int
    total: int
    unit: str

    def describe(self) -> str:
        """Say how far it is."""
        return f"{self.done:,} of {self.total:,} {self.unit} committed"


def measure_advance(
    target: Target | None, start: Progress, now: Progress, checkpoint: UPath
) -> tuple[Advance, ...]:
    """Measure how far a run is that began at one position and has got to another."""
    if target is None:
        return ()
    targets = target.targets if isinstance(target, AllTargets) else (target,)
    return tuple(advance for each in targets for advance in _measure(each, start, now, checkpoint))


def describe_advance(advances: tuple[Advance, ...], elapsed_seconds: float) -> str:
    """Say how far a run is, and how long the rest takes if it goes on like this."""
    told = ", ".join(advance.describe() for advance in advances)
    left = [
        elapsed_seconds * (advance.total - advance.done) / advance.done
        for advance in advances
        if advance.done
    ]
    is_known = bool(left) and len(left) == len(advances)
    return told + (f", about {spell_seconds(max(left))} left" if is_known else "")


def _measure(
    target: Target, start: Progress, now: Progress, checkpoint: UPath
) -> Iterator[Advance]:
    match target:
        case FilesTarget(paths=paths, source=source):
            position = now.find_committed(source)
            offset = -1 if position is None else position["logOffset"]
            missing = len(list_missing_files(target, offset, checkpoint))
            yield Advance(len(paths) - missing, len(paths), "files")
        case KafkaTarget(offsets=ends, source=source):
            began = start.find_committed(source) or _find_beginning(checkpoint, source)
            if began is not None:
                reached = now.find_committed(source) or began
                yield Advance(_count(began, reached), _count(began, ends), "records")
        case DeltaTarget(version=version, source=source):
            first, next_one = start.find_committed(source), now.find_committed(source)
            if first and next_one and not first.get("isStartingVersion"):
                begin = first["reservoirVersion"]
                done = min(next_one["reservoirVersion"], version + 1) - begin
                yield Advance(done, version + 1 - begin, "versions")


def _find_beginning(checkpoint: UPath, source: str) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] = read_initial_offsets(checkpoint, source)
    except FileNotFoundError:
        return None  # the query has not begun yet
    return found


def _count(start: Mapping[str, Any], end: Mapping[str, Any]) -> int:
    return sum(
        max(0, offset - start.get(topic, {}).get(number, 0))
        for topic, numbers in end.items()
        for number, offset in numbers.items()
    )
