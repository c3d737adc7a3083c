"""How many slices of a backfill run at once, whoever starts them.

A lane is a lease: a slice that is run holds one, and there are as many as slices may be run at once.
Those that wait are let in by their number, so that a free lane wakes one of them and not all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from upath import UPath

from tidegate.core.errors import LeaseHeldError
from tidegate.core.lease import LeaseFolder, hold_lease
from tidegate.core.storage import list_names

_SLICE = "slice "


@dataclass(frozen=True)
class Lanes:
    """The lanes of one backfill."""

    folder: UPath
    """Of the backfill."""
    count: int

    @contextmanager
    def enter(self, number: int, seconds: float) -> Iterator[bool]:
        """Hold a lane for a slice, if one is free."""
        with ExitStack() as stack:
            yield any(self._take(lane, number, seconds, stack) for lane in self._list_lanes())

    def count_ahead(self, number: int) -> int:
        """Count how many slices must begin or end before this one may begin; none lets it in."""
        held = [record.holder.what for lane in self._list_lanes() if (record := lane.find_held())]
        begun = set(list_names(self.folder / "lease"))
        ahead = sum(
            str(earlier) not in begun and f"{_SLICE}{earlier}" not in held
            for earlier in range(number)
        )
        return max(0, ahead + 1 - (self.count - len(held)))

    @staticmethod
    def _take(lane: LeaseFolder, number: int, seconds: float, stack: ExitStack) -> bool:
        try:
            stack.enter_context(hold_lease(lane, f"{_SLICE}{number}", seconds=seconds, waits=False))
        except LeaseHeldError:
            return False
        return True

    def _list_lanes(self) -> Iterator[LeaseFolder]:
        return (LeaseFolder(self.folder / "lanes" / str(lane)) for lane in range(self.count))
