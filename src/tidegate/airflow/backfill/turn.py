"""Waiting for a slice's turn in the triggerer, without a worker slot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tidegate.core.backfill.lanes import Lanes
from tidegate.core.storage import open_path

_LONGEST_PAUSE_SECONDS = 60.0


class TurnTrigger(BaseTrigger):
    """Fires when a lane is free for a slice."""

    def __init__(self, *, folder: str, lanes: int, number: int, poll_seconds: float = 2) -> None:
        super().__init__()
        self.folder = folder
        self.lanes = lanes
        self.number = number
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Write the trigger down for the database."""
        return (
            "tidegate.airflow.backfill.turn.TurnTrigger",
            {
                "folder": self.folder,
                "lanes": self.lanes,
                "number": self.number,
                "poll_seconds": self.poll_seconds,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look again and again, off the event loop; the more are ahead, the less often."""
        lanes, ahead = Lanes(open_path(self.folder), self.lanes), 1
        while True:
            try:
                ahead = await asyncio.to_thread(lanes.count_ahead, self.number)
            except OSError as error:
                self.log.warning("%s cannot be read right now: %s", self.folder, error)
            if not ahead:
                yield TriggerEvent({"reason": "a lane is free"})
                return
            await asyncio.sleep(min(self.poll_seconds * ahead, _LONGEST_PAUSE_SECONDS))
