"""A note that a batch was begun or done, for sinks that cannot tell it themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from upath import UPath

from tidegate.core.ledger import SinkRecord
from tidegate.core.storage import read_json, write_json


@dataclass(frozen=True)
class BatchMarker:
    """The notes of one sink: the batch at hand, and the one before it."""

    folder: UPath
    sink: str

    def name(self, batch_id: int, query_id: str) -> str:
        """Name a batch so that no other has the name."""
        return f"{query_id}:{self.sink}:{batch_id}"

    def find(self, batch_id: int, query_id: str) -> dict[str, Any] | None:
        """Find what was noted when a batch was begun; None where it never was."""
        found: dict[str, Any] | None = read_json(self._file(batch_id, query_id))
        return found

    def note(self, batch_id: int, query_id: str, **facts: Any) -> None:
        """Note that a batch is begun."""
        write_json(self._file(batch_id, query_id), facts)

    def note_done(self, batch_id: int, query_id: str, rows: int | None = None) -> None:
        """Note that a batch is done, so that it is passed over when it comes again."""
        self.note(batch_id, query_id, done=True, rows=rows)
        self.forget_before(batch_id, query_id)

    def find_done(self, batch_id: int, query_id: str) -> SinkRecord | None:
        """Find what a batch did that is done; None where it is yet to be, or may be half done."""
        noted = self.find(batch_id, query_id) or {}
        if not noted.get("done"):
            return None
        return SinkRecord(rows=noted.get("rows"), version=None, is_replay=True)

    def forget_before(self, batch_id: int, query_id: str) -> None:
        """Forget the batch before one: it is committed by now."""
        self._file(batch_id - 1, query_id).unlink(missing_ok=True)

    def _file(self, batch_id: int, query_id: str) -> UPath:
        return self.folder / f"{query_id}_{batch_id}.json"
