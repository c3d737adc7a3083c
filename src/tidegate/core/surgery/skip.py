"""Leaving out a batch that can never be written, with its range written down."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from upath import UPath

from tidegate.core.checkpoint.belongings import find_belongings, name_belongings
from tidegate.core.checkpoint.log import read_batch_offsets
from tidegate.core.checkpoint.progress import State, read_progress
from tidegate.core.checkpoint.statelog import is_stateful
from tidegate.core.errors import SurgeryError
from tidegate.core.ledger import RENEWAL, Baseline, BatchRecord, Ledger
from tidegate.core.surgery.change import Change

RUN_ID = "tidegate checkpoint skip"


@dataclass(frozen=True)
class Skip:
    """A pending batch that is taken for committed although its rows were not written."""

    checkpoint: UPath

    def plan(self) -> Change:
        """Say which files change; refuse where something else than the batch would be wrong."""
        progress = read_progress(self.checkpoint)
        if not progress.is_readable or progress.obstacle:
            raise SurgeryError(progress.problem or progress.obstacle or "")
        if progress.state is not State.PENDING or progress.planned_batch is None:
            raise SurgeryError(
                "No batch is pending, so there is none to leave out.",
                remedy="Only a batch that was planned and not committed can be left out.",
            )
        batch = progress.planned_batch
        if is_stateful(self.checkpoint):
            raise SurgeryError(
                f"Batch {batch} must not be left out: the query remembers rows, and the state that "
                "this batch would leave is needed by the next one.",
                remedy="Correct the step or the data so that the batch can be written; or give the "
                "pipeline a new name and table, and so a state of its own.",
            )
        planned = read_batch_offsets(self.checkpoint, batch)
        watermark = planned.watermark_ms if planned else 0
        commit = f"v1\n{json.dumps({'nextBatchWatermarkMs': watermark or 0})}"
        writes = {f"{self.checkpoint.name}/commits/{batch}": commit.encode()}
        beside = name_belongings(self.checkpoint)
        writes[f"{beside}skips/{batch}.json"] = self._spell_record(batch)
        if (find_belongings(self.checkpoint) / "runs").exists():
            writes[f"{beside}runs/batches/{batch}.json"] = self._spell_record(batch)
            if self._is_first_written(progress.query_id, batch):
                skipped = Baseline(progress.query_id, batch)
                writes[f"{beside}runs/{RENEWAL}"] = json.dumps(asdict(skipped)).encode()
        return Change(self.checkpoint.parent, writes)

    def _is_first_written(self, query_id: str | None, batch: int) -> bool:
        """Whether the batch would have been the first that sinks know the query by."""
        before = Baseline(query_id, batch - 1)
        ledger = Ledger.beside(find_belongings(self.checkpoint))
        return batch == 0 or ledger.find_renewal() == before

    def _spell_record(self, batch: int) -> bytes:
        """Spell the range that is left out, as the ledger has it for batches that were written."""
        planned = read_batch_offsets(self.checkpoint, batch)
        before = read_batch_offsets(self.checkpoint, batch - 1)
        record = BatchRecord(
            batch_id=batch,
            run_id=RUN_ID,
            input_rows=0,
            seconds=0.0,
            committed_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            sources=[
                {
                    "description": source,
                    "startOffset": before.sources.get(source) if before else None,
                    "endOffset": end,
                }
                for source, end in (planned.sources if planned else {}).items()
            ],
            sinks={},
        )
        return json.dumps(asdict(record), indent=2, sort_keys=True).encode()
