"""How far a backfill is, and how long it will take."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from tidegate.core.backfill.book import Backfill, Backfills
from tidegate.core.backfill.range import count


@dataclass(frozen=True)
class Progress:
    """How much of a backfill is done, as its slices were written down."""

    slices: int
    done: int
    rows_read: int
    seconds_left: float | None
    """None until a slice is done."""

    @classmethod
    def of(cls, book: Backfills, backfill: Backfill) -> Self:
        """Look at what is done by now."""
        done = book.read_done(backfill.id)
        size = sum(backfill.slices[number].size for number in done)
        worked = sum(result.seconds for result in done.values())
        left = backfill.range.size - size
        at_once = max(1, min(backfill.parallelism, len(backfill.slices) - len(done)))
        return cls(
            len(backfill.slices),
            len(done),
            sum(result.rows_read for result in done.values()),
            worked / size * left / at_once if size else None,
        )

    def describe(self) -> str:
        """Say it in a few words."""
        left = (
            "" if self.seconds_left is None else f", about {tell_seconds(self.seconds_left)} left"
        )
        return (
            f"{self.done} of {count(self.slices, 'slice')} done, {count(self.rows_read, 'row')} "
            f"read{left}"
        )


def tell_seconds(seconds: float) -> str:
    """Say a span of time as a clock does."""
    return str(timedelta(seconds=round(seconds)))
