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
from tidegate.core.storage import list_names, write_json


@dataclass(frozen=True)
class Queue:
    """What a slice waits for."""

    ahead: int
    """How many earlier slices were never begun."""
    free: int
    """How many lanes nobody holds."""

    @property
    def is_open(self) -> bool:
        """Whether a lane is free for the slice."""
        return self.free > self.ahead


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

    def look(self, number: int) -> Queue:
        """Look at what a slice waits for."""
        held = sum(lane.find_held() is not None for lane in self._list_lanes())
        begun = {*list_names(self._begun), *list_names(self.folder / "slices")}
        ahead = sum(f"{earlier}.json" not in begun for earlier in range(number))
        return Queue(ahead, max(0, self.count - held))

    def _take(self, lane: LeaseFolder, number: int, seconds: float, stack: ExitStack) -> bool:
        try:
            stack.enter_context(hold_lease(lane, f"slice {number}", seconds=seconds, waits=False))
        except LeaseHeldError:
            return False
        # Before anything can go wrong: a slice that fails at once must stand in nobody's way.
        write_json(self._begun / f"{number}.json", {})
        return True

    @property
    def _begun(self) -> UPath:
        return self.folder / "begun"

    def _list_lanes(self) -> Iterator[LeaseFolder]:
        return (LeaseFolder(self.folder / "lanes" / str(lane)) for lane in range(self.count))
