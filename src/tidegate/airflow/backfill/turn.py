"""Waiting for a slice's turn in the triggerer, without a worker slot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tidegate.core.backfill.lanes import Lanes
from tidegate.core.storage import open_path

_LONGEST_PAUSE_SECONDS = 60.0
_PATIENT_LOOKS = 10


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
        lanes, looks, pause = Lanes(open_path(self.folder), self.lanes), 0, self.poll_seconds
        while True:
            try:
                queue = await asyncio.to_thread(lanes.look, self.number)
            except OSError as error:
                self.log.warning("%s cannot be read right now: %s", self.folder, error)
            else:
                # An earlier slice that nobody begins, such as one that a person marked, must not
                # keep a free lane from the others for ever.
                looks = looks + 1 if queue.free else 0
                if queue.is_open or looks > _PATIENT_LOOKS:
                    yield TriggerEvent({"reason": "a lane is free"})
                    return
                pause = min(self.poll_seconds * max(1, queue.ahead), _LONGEST_PAUSE_SECONDS)
            await asyncio.sleep(pause)
