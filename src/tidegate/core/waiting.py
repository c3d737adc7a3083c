"""What waits in a source: how much, since when, and how long it will be kept."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Unit(StrEnum):
    """What a source is counted in."""

    RECORDS = "records"
    FILES = "files"
    VERSIONS = "versions"


@dataclass(frozen=True)
class Waiting:
    """What waited in a source when it was looked at."""

    unit: Unit
    count: int
    oldest_seconds: float | None = None
    """The age of the oldest that waits; None where nothing does, or nobody knows."""
    headroom_seconds: float | None = None
    """How long that one is kept at the least; None where nothing waits or expires."""
