"""What a source's offset in the log means, told by its shape."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class SourceKind(StrEnum):
    """The kinds of source whose positions can be compared."""

    KAFKA = "kafka"
    FILES = "files"
    DELTA = "delta"
    RATE = "rate"
    UNKNOWN = "unknown"


def classify_position(position: Any) -> SourceKind:
    """Tell the kind of a source from one of its offsets."""
    if _is_count(position):
        return SourceKind.RATE
    if not isinstance(position, Mapping):
        return SourceKind.UNKNOWN
    keys = set(position)
    if keys == {"logOffset"} and _is_count(position["logOffset"]):
        return SourceKind.FILES
    if keys == {"offset", "timestamp"} and all(_is_count(value) for value in position.values()):
        return SourceKind.RATE
    if {"reservoirId", "reservoirVersion"} <= keys:
        is_delta = _is_count(position["reservoirVersion"])
        return SourceKind.DELTA if is_delta else SourceKind.UNKNOWN
    if position and all(_is_partition_map(value) for value in position.values()):
        return SourceKind.KAFKA
    return SourceKind.UNKNOWN


def describe_position(position: Any) -> str:
    """Say a position in a few words, for tables and logs."""
    match classify_position(position):
        case SourceKind.FILES:
            return f"file log {position['logOffset']}"
        case SourceKind.DELTA:
            return _describe_delta(position)
        case SourceKind.KAFKA:
            return ", ".join(
                f"{topic} {sum(parts.values()):,} ({len(parts)} partitions)"
                for topic, parts in position.items()
            )
        case SourceKind.RATE:
            return f"row {position['offset'] if isinstance(position, Mapping) else position}"
        case _:
            return "-" if position is None else str(position)


def _describe_delta(position: Mapping[str, Any]) -> str:
    version, index = position["reservoirVersion"], position.get("index", -1)
    if position.get("isStartingVersion"):
        return f"in the snapshot of version {version}"
    if isinstance(index, int) and index >= 0:
        return f"version {version} to file {index}"
    return f"up to version {version - 1}"


def is_behind(position: Any, other: Any) -> bool:
    """Whether a position is behind another of the same source in any way."""
    kind = classify_position(position)
    if kind is not classify_position(other):
        return False
    match kind:
        case SourceKind.FILES:
            return bool(position["logOffset"] < other["logOffset"])
        case SourceKind.DELTA:
            return _rank_delta(position) < _rank_delta(other)
        case SourceKind.KAFKA:
            return any(
                position.get(topic, {}).get(partition, offset) < offset
                for topic, partitions in other.items()
                for partition, offset in partitions.items()
            )
        case SourceKind.RATE:
            return _rank_rate(position) < _rank_rate(other)
        case _:
            return False


def _rank_delta(position: Mapping[str, Any]) -> tuple[int, bool, int]:
    index = position.get("index", -1)
    is_snapshot = bool(position.get("isStartingVersion"))
    return position["reservoirVersion"], not is_snapshot, index if _is_count(index) else -1


def _rank_rate(position: Any) -> int:
    return int(position["offset"] if isinstance(position, Mapping) else position)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_partition_map(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        str(partition).isdigit() and _is_count(offset) for partition, offset in value.items()
    )
