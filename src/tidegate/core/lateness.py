"""How late rows come behind the newest event, and the watermark that follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import accumulate, pairwise
from math import ceil

SHARES = (0.5, 0.95, 0.99, 0.999)
"""The shares of a batch's rows whose lateness is told."""

_SLACK = 0.02  # of the smaller part: one row more must not move a share to the next known point
_STEPS = (1, 5, 10, 30, 60, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400)


@dataclass(frozen=True)
class EventTimes:
    """What was observed of the event times of a batch, in epoch milliseconds."""

    rows: int
    newest_ms: int | None
    oldest_ms: int | None
    shares_ms: tuple[int, ...]
    """The event times that so many of the rows (SHARES) are not older than."""


@dataclass(frozen=True)
class Lateness:
    """How far rows were behind the newest event of earlier batches when they came."""

    rows: int
    """How many rows had an event time."""
    span: timedelta
    """How far apart the events of a batch were at the most."""
    shares: dict[float, timedelta] = field(default_factory=dict)
    """So many of all rows came within this time, or sooner; nothing is known from one batch."""
    latest: timedelta = timedelta()
    """All rows came within this time."""

    def suggest(self, share: float = SHARES[-1]) -> timedelta | None:
        """Suggest a watermark's delay that lets so many of all rows in; None where none is known."""
        if not self.shares:
            return None
        seconds = self.shares[share].total_seconds()
        step = next((step for step in _STEPS if step >= seconds / 10), _STEPS[-1])
        return timedelta(seconds=max(1, ceil(seconds / step)) * step)


def measure_lateness(batches: Iterable[EventTimes]) -> Lateness | None:
    """Measure how late rows came, over batches in their order; None where none had a time.

    What is late is told by the newest event of earlier batches: Spark moves a watermark between batches,
    so that rows of one batch are never late for each other. Nor is a row of the first one.
    """
    newest: int | None = None
    rows = span_ms = 0
    points: list[tuple[int, float]] = []
    for batch in batches:
        if batch.newest_ms is None or batch.oldest_ms is None:
            continue
        rows += batch.rows
        span_ms = max(span_ms, batch.newest_ms - batch.oldest_ms)
        points += _list_points(batch, newest)
        newest = batch.newest_ms if newest is None else max(newest, batch.newest_ms)
    if newest is None:
        return None
    span = timedelta(milliseconds=span_ms)
    if not points:
        return Lateness(rows, span)
    points.sort()
    total = sum(weight for _, weight in points)
    return Lateness(
        rows=rows,
        span=span,
        shares={
            share: _find_quantile(points, (share - _SLACK * min(share, 1 - share)) * total)
            for share in SHARES
        },
        latest=timedelta(milliseconds=points[-1][0]),
    )


def _list_points(batch: EventTimes, newest: int | None) -> list[tuple[int, float]]:
    """List how late parts of a batch's rows were, and how many rows each is."""
    if newest is None or batch.oldest_ms is None:
        return []
    # Rows between two shares are taken to be as late as the later of them.
    times = (*batch.shares_ms, batch.oldest_ms)
    weights = (end - start for start, end in pairwise((0.0, *SHARES, 1.0)))
    return [
        (max(0, newest - at_ms), weight * batch.rows)
        for at_ms, weight in zip(times, weights, strict=True)
    ]


def _find_quantile(points: list[tuple[int, float]], wanted: float) -> timedelta:
    weights = accumulate(weight for _, weight in points)
    late_ms = next(
        late_ms for (late_ms, _), reached in zip(points, weights, strict=True) if reached >= wanted
    )
    return timedelta(milliseconds=late_ms)
