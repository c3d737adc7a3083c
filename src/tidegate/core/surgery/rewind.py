"""Setting a query back, so that it reads again what followed a batch."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from upath import UPath

from tidegate.core.checkpoint.belongings import find_belongings, name_belongings
from tidegate.core.checkpoint.log import OffsetEntry, list_batches, read_offsets
from tidegate.core.checkpoint.position import SourceKind, classify_position, is_behind
from tidegate.core.checkpoint.progress import Progress, read_progress
from tidegate.core.checkpoint.statelog import list_state, sort_stores
from tidegate.core.doctor.state import StateExam
from tidegate.core.errors import SurgeryError
from tidegate.core.ledger import RENEWAL, Baseline, Decision, Plan
from tidegate.core.storage import find_files
from tidegate.core.surgery.change import Change, list_digits
from tidegate.core.surgery.filelog import plan_file_log


@dataclass(frozen=True)
class Rewind:
    """A query that is set back to the end of a batch."""

    checkpoint: UPath
    batch: int
    new_query_id: str | None = None
    """A new identity, for sinks that hold the batches which are read again."""

    @classmethod
    def to(cls, checkpoint: UPath, batch: int, *, renews: bool) -> Rewind:
        """Set back to a batch, under a new identity if asked."""
        return cls(checkpoint, batch, str(uuid4()) if renews else None)

    def plan(self) -> Change:
        """Say which files change; refuse what could not be gone on from."""
        progress = read_progress(self.checkpoint)
        entry = self._check(progress)
        files = {name for name in find_files(self.checkpoint) if "/." not in f"/{name}"}
        writes: dict[str, bytes] = {}
        deletes = [
            *list_digits(files, "offsets", self.batch),
            *list_digits(files, "commits", self.batch),
            *self._list_later_state(),
        ]
        for source, position in entry.sources.items():
            if classify_position(position) is SourceKind.FILES:
                more, gone = plan_file_log(self.checkpoint, source, position["logOffset"])
                writes |= more
                deletes += gone
        return self._include_ledger(progress, writes, deletes)

    def _check(self, progress: Progress) -> OffsetEntry:
        if not progress.is_readable:
            raise SurgeryError(progress.problem or "", remedy="Restore a backup instead.")
        committed = list_batches(self.checkpoint / "commits")
        planned = list_batches(self.checkpoint / "offsets")
        kept = sorted(committed & planned)
        if self.batch not in kept:
            raise SurgeryError(
                f"The checkpoint cannot be set back to batch {self.batch}.",
                cause=f"It keeps batches {kept[0]} to {kept[-1]}."
                if kept
                else "It has no committed batch.",
                remedy="Name one of them, or restore a backup.",
            )
        if progress.planned_batch == self.batch and not self.new_query_id:
            raise SurgeryError(f"The checkpoint is at batch {self.batch} already.")
        self._check_state()
        return read_offsets(self.checkpoint / "offsets" / str(self.batch))

    def _check_state(self) -> None:
        missing = list(StateExam(self.checkpoint, self.batch + 1).find_faults())
        if missing:
            raise SurgeryError(
                f"The query remembers rows, and its state of batch {self.batch} is not there any more: "
                f"{missing[0].message}",
                remedy="Name a later batch, or restore a backup.",
            )

    def _list_later_state(self) -> list[str]:
        # A snapshot of what was once to come would be taken for that of the new batches.
        stores = sort_stores(list_state(self.checkpoint)).values()
        return [
            f"state/{path}"
            for store in stores
            for files in (store.steps, store.wholes)
            for version, path in files.items()
            if version > self.batch + 1
        ]

    def _include_ledger(
        self, progress: Progress, writes: dict[str, bytes], deletes: list[str]
    ) -> Change:
        """Let the ledger know, where there is one: to plan, a query that went back is a fault."""
        parent, name = self.checkpoint.parent, self.checkpoint.name
        below = {f"{name}/{file}": content for file, content in writes.items()}
        gone = [f"{name}/{file}" for file in deletes]
        beside = name_belongings(self.checkpoint)
        recorded = find_files(find_belongings(self.checkpoint) / "runs")
        if recorded:
            batches = (file for file in recorded if file.startswith("batches/"))
            gone += [f"{beside}runs/{file}" for file in batches if _read_batch(file) > self.batch]
            baseline = Baseline(self.new_query_id or progress.query_id, self.batch)
            below[f"{beside}runs/latest.json"] = _spell_plan(baseline)
        if self.new_query_id:
            below |= spell_renewal(self.checkpoint, Baseline(self.new_query_id, self.batch))
        return Change(parent, below, tuple(gone))


def find_batch_at(checkpoint: UPath, position: Any) -> int:
    """Find the newest committed batch that ends at a position or before it, in every source."""
    committed = list_batches(checkpoint / "commits") & list_batches(checkpoint / "offsets")
    for batch in sorted(committed, reverse=True):
        entry = read_offsets(checkpoint / "offsets" / str(batch))
        is_by_source = isinstance(position, dict) and set(position) <= set(entry.sources)
        wanted = position if is_by_source else {"0": position}
        if all(
            source in entry.sources
            and classify_position(entry.sources[source]) is classify_position(end)
            and not is_behind(end, entry.sources[source])
            for source, end in wanted.items()
        ):
            return batch
    raise SurgeryError(
        "No batch that the checkpoint keeps ends at that position or before it.",
        cause="It lies before all of them, or is of another kind of source.",
        remedy="'tidegate checkpoint show' tells what a position looks like; restore a backup, or give "
        "the pipeline a new name to read from its source's start.",
    )


def spell_renewal(checkpoint: UPath, renewed: Baseline) -> dict[str, bytes]:
    """Spell what gives a query a new identity at a batch, below its checkpoint's parent."""
    beside = name_belongings(checkpoint)
    return {
        f"{checkpoint.name}/metadata": json.dumps({"id": renewed.query_id}).encode(),
        f"{beside}runs/{RENEWAL}": json.dumps(asdict(renewed)).encode(),
        f"{beside}runs/latest.json": _spell_plan(renewed),
    }


def _read_batch(file: str) -> int:
    digits = file.removeprefix("batches/").removesuffix(".json")
    return int(digits) if digits.isdigit() else -1


def _spell_plan(baseline: Baseline) -> bytes:
    reason = f"set back to batch {baseline.committed_batch}"
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    plan = Plan("tidegate checkpoint", Decision.IDLE, reason, now, baseline=baseline)
    return json.dumps(asdict(plan), indent=2, sort_keys=True, default=str).encode()
