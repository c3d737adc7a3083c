"""Asset events for the commits of a query that somebody else runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.sdk import AssetWatcher
from airflow.triggers.base import BaseEventTrigger, TriggerEvent

from tidegate.core.checkpoint.progress import Progress, read_progress
from tidegate.core.ledger import rank_batch
from tidegate.core.storage import open_path

_CURSOR = "tidegate_cursor"
"""Where Airflow keeps how far the watcher has told, so that a triggerer that dies forgets nothing."""


def commit_watcher(name: str, checkpoint: str, *, poll_seconds: float = 5) -> AssetWatcher:
    """Watch a checkpoint: its asset has an event whenever something new is committed."""
    trigger = CommitTrigger(checkpoint=checkpoint, poll_seconds=poll_seconds)
    return AssetWatcher(name=name, trigger=trigger)


class CommitTrigger(BaseEventTrigger):
    """Fires whenever the commit log of a query has grown, or is another query's.

    It begins where the log stands when it first looks, and keeps the query's id beside the batch: a
    batch number alone would not tell a checkpoint that was replaced.
    """

    def __init__(self, *, checkpoint: str, poll_seconds: float = 5) -> None:
        super().__init__()
        self.checkpoint = checkpoint
        self.poll_seconds = poll_seconds

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Write the trigger down for the database."""
        return (
            "tidegate.airflow.watcher.CommitTrigger",
            {"checkpoint": self.checkpoint, "poll_seconds": self.poll_seconds},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look again and again, off the event loop."""
        path, told = open_path(self.checkpoint), await self._recall()
        while True:
            try:
                progress = await asyncio.to_thread(read_progress, path)
            except OSError as error:
                # A store that is away for a moment proves nothing.
                self.log.warning("%s cannot be read right now: %s", self.checkpoint, error)
            else:
                if not progress.is_readable:
                    self.log.warning("%s", progress.problem)
                elif told is None or _has_moved(told, progress):
                    if told is not None and _is_news(told, progress):
                        yield TriggerEvent(self._describe(told, progress))
                    # Told first, then noted: what is told twice does less harm than what never is.
                    told = _tell(progress)
                    await self._note(told)
            await asyncio.sleep(self.poll_seconds)

    def _describe(self, told: dict[str, Any], progress: Progress) -> dict[str, Any]:
        is_replaced = not _is_same(told, progress)
        return {
            "checkpoint": self.checkpoint,
            "query_id": progress.query_id,
            "committed_batch": progress.committed_batch,
            "batches_since": None if is_replaced else told["committed_batch"] + 1,
            "is_replaced": is_replaced,
            "offsets": {source.source: source.committed for source in progress.sources},
        }

    async def _recall(self) -> dict[str, Any] | None:
        kept = await self.asset_state_store.aget(_CURSOR) if self.asset_state_store else None
        return kept if isinstance(kept, dict) else None

    async def _note(self, told: dict[str, Any]) -> None:
        if self.asset_state_store:
            await self.asset_state_store.aset(_CURSOR, told)


def _tell(progress: Progress) -> dict[str, Any]:
    # A query that has committed nothing yet has no id either, as far as can be relied on.
    batch = rank_batch(progress.committed_batch)
    return {"query_id": progress.query_id if batch >= 0 else None, "committed_batch": batch}


def _is_same(told: dict[str, Any], progress: Progress) -> bool:
    return told["query_id"] in (None, progress.query_id)


def _has_moved(told: dict[str, Any], progress: Progress) -> bool:
    # Of a checkpoint that was deleted, what was told is kept: what follows is another query.
    return progress.committed_batch is not None and _tell(progress) != told


def _is_news(told: dict[str, Any], progress: Progress) -> bool:
    # A query that went back has nothing new; from there on it has.
    return (
        not _is_same(told, progress)
        or rank_batch(progress.committed_batch) > told["committed_batch"]
    )
