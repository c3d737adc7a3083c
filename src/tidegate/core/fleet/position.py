"""Where a pipeline's query stands in each of its sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tidegate.core.checkpoint.position import SourceKind, describe_position
from tidegate.core.checkpoint.progress import Progress, SourceProgress


@dataclass(frozen=True)
class PartitionPosition:
    """How far one partition is read."""

    topic: str
    partition: int
    committed: int | None
    planned: int | None


@dataclass(frozen=True)
class SourcePosition:
    """How far one source is read."""

    source: str
    kind: SourceKind
    committed: str
    """In words."""
    planned: str
    partitions: tuple[PartitionPosition, ...] = ()
    """Those of Kafka; other sources have none."""


def list_positions(progress: Progress) -> tuple[SourcePosition, ...]:
    """List how far each source is read."""
    return tuple(
        SourcePosition(
            found.source,
            found.kind,
            describe_position(found.committed),
            describe_position(found.planned),
            tuple(_list_partitions(found)),
        )
        for found in progress.sources
    )


def _list_partitions(found: SourceProgress) -> Iterator[PartitionPosition]:
    if found.kind is not SourceKind.KAFKA:
        return
    committed, planned = _flatten(found.committed), _flatten(found.planned)
    for topic, number in sorted(committed | planned):
        place = (topic, number)
        yield PartitionPosition(topic, number, committed.get(place), planned.get(place))


def _flatten(position: Any) -> dict[tuple[str, int], int]:
    return {
        (topic, int(number)): offset
        for topic, numbers in (position or {}).items()
        for number, offset in numbers.items()
    }
