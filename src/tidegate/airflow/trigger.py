"""Watching a checkpoint from the triggerer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tidegate.core.condition import Verdict, judge, parse_conditions
from tidegate.core.storage import open_path


class CheckpointTrigger(BaseTrigger):
    """Fires when a checkpoint meets its conditions, or never will."""

    def __init__(
        self, *, checkpoint: str, conditions: list[dict[str, Any]], poll_seconds: float
    ) -> None:
        super().__init__()
        self.checkpoint = checkpoint
        self.conditions = conditions
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Write the trigger down for the database."""
        return (
            "tidegate.airflow.trigger.CheckpointTrigger",
            {
                "checkpoint": self.checkpoint,
                "conditions": self.conditions,
                "poll_seconds": self.poll_seconds,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look again and again, off the event loop."""
        checkpoint, conditions = open_path(self.checkpoint), parse_conditions(self.conditions)
        while True:
            try:
                judgement = await asyncio.to_thread(judge, checkpoint, conditions)
            except OSError as error:
                # A store that is away for a moment proves nothing; the sensor's timeout bounds it.
                self.log.warning("%s cannot be read right now: %s", self.checkpoint, error)
            else:
                if judgement.verdict is not Verdict.WAITING:
                    yield TriggerEvent(
                        {"verdict": judgement.verdict.value, "reason": judgement.reason}
                    )
                    return
            await asyncio.sleep(self.poll_seconds)
