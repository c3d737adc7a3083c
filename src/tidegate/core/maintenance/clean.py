"""What a pipeline keeps beside its tables, and no longer needs: old runs, backfills, litter.

Nothing is deleted that status, confirm, the sensor or a recovery goes by: the newest batches, those
since the last plan or announcement, the last run, and all that is not finished.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial

from upath import UPath

from tidegate.core.backfill.book import Backfills
from tidegate.core.doctor.checkpoint import glance_at_checkpoint
from tidegate.core.doctor.fault import Severity
from tidegate.core.lease import LeaseFolder
from tidegate.core.ledger import Ledger, Run, rank_batch
from tidegate.core.replay import Replays
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.storage import list_names, open_path, read_json, remove_tree

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_LITTER = frozenset({"temporary_file", "orphan_checksum"})
_LITTER_AGE = timedelta(days=1)
"""A driver that still writes has done with a temporary file long before."""


@dataclass(frozen=True)
class Cleaned:
    """What was deleted of a pipeline's state, or would be."""

    pipeline: str
    counts: dict[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    is_dry: bool = False

    def describe(self) -> Iterator[str]:
        """Say it in a few words."""
        told = ", ".join(f"{count:,} {what}" for what, count in self.counts.items())
        verb = "to clear away" if self.is_dry else "cleared away"
        yield f"{verb}: {told}" if told else "nothing to clear away"
        yield from self.problems


def clean_state(pipeline: Pipeline, settings: Settings, *, is_dry: bool = False) -> Cleaned:
    """Delete what a pipeline keeps and no longer needs; what cannot be read is left alone."""
    cleaning = _Cleaning(pipeline, settings, datetime.now(UTC))
    counts: dict[str, int] = {}
    problems = []
    for what, find in cleaning.list_kinds().items():
        try:
            for remove in find():
                counts[what] = counts.get(what, 0) + 1
                if not is_dry:
                    remove()
        except Exception as error:  # whatever it is, the rest is to be cleared away
            problems.append(f"{what} are left alone: {error}")
    return Cleaned(pipeline.name, counts, tuple(problems), is_dry)


_Removal = Callable[[], None]


@dataclass(frozen=True)
class _Cleaning:
    pipeline: Pipeline
    settings: Settings
    now: datetime

    def list_kinds(self) -> dict[str, Callable[[], Iterator[_Removal]]]:
        """List what may be deleted, by kind."""
        return {
            "records of batches": self._find_batches,
            "runs": self._find_runs,
            "backfills": self._find_backfills,
            "replays": self._find_replays,
            "files that killed drivers left": self._find_litter,
        }

    @property
    def _ledger(self) -> Ledger:
        return Ledger.beside(self.settings.state_of(self.pipeline.name))

    def _find_batches(self) -> Iterator[_Removal]:
        latest = self._ledger.find_latest()
        folder = self._ledger.folder / "batches"
        names = (name.removesuffix(".json") for name in list_names(folder))
        ids = sorted(int(name) for name in names if name.isdigit())
        if latest is None or not ids:
            return
        end = min(_find_needed(latest), ids[-1] - self.pipeline.maintenance.keep_batches + 1)
        # They are as old as their numbers say, so that the first one to be kept ends the search.
        for batch_id in ids:
            batch = self._ledger.read_batch(batch_id) if batch_id < end else None
            if batch is None or not self._is_over(batch.committed_at):
                return
            yield partial((folder / f"{batch_id}.json").unlink, missing_ok=True)

    def _find_runs(self) -> Iterator[_Removal]:
        latest = self._ledger.find_latest()
        runs = (name for name in list_names(self._ledger.folder) if name.startswith("run="))
        for name in sorted(runs):
            if self._is_recent(name):
                continue  # which spares reading it
            plan = read_json(self._ledger.folder / name / "plan.json")
            if not plan or not latest or plan["run_id"] == latest.plan.run_id:
                continue
            if self._is_over(plan["planned_at"]):
                yield partial(remove_tree, self._ledger.folder / name)

    def _find_backfills(self) -> Iterator[_Removal]:
        book = Backfills(self.pipeline, self.settings)
        for backfill_id in book.list_ids():
            backfill = book.read(backfill_id)
            is_old = self._is_old(backfill.begun_at, self.pipeline.maintenance.backfill_retention)
            if is_old and book.is_verified(backfill):
                yield partial(remove_tree, book.folder_of(backfill_id))

    def _find_replays(self) -> Iterator[_Removal]:
        replays = Replays(self.pipeline, self.settings)
        for replay in map(replays.read, replays.list_ids()):
            kept = self.pipeline.maintenance.backfill_retention
            if replay.result and self._is_old(replay.begun_at, kept):
                yield partial(replays.forget, replay)

    def _find_litter(self) -> Iterator[_Removal]:
        checkpoint = self.settings.checkpoint_of(self.pipeline.name)
        if LeaseFolder.beside(checkpoint).find_held() or not list_names(checkpoint):
            return
        for fault in glance_at_checkpoint(checkpoint):
            if fault.code in _LITTER and fault.severity is Severity.INFO:
                file = open_path(fault.file)
                if _find_age(file, self.now) > _LITTER_AGE:
                    yield partial(file.unlink, missing_ok=True)

    def _is_recent(self, name: str) -> bool:
        date = _DATE.search(name)
        return date is not None and not self._is_over(date[0])

    def _is_over(self, moment: str) -> bool:
        return self._is_old(moment, self.pipeline.maintenance.ledger_retention)

    def _is_old(self, moment: str, kept: timedelta) -> bool:
        at = datetime.fromisoformat(moment)
        return self.now - (at if at.tzinfo else at.replace(tzinfo=UTC)) > kept


def _find_needed(latest: Run) -> int:
    """Find the first batch that a run, its recovery or its announcement goes by."""
    told = latest.plan.announced.batch_id if latest.plan.announced else None
    begins = rank_batch(latest.plan.baseline.committed_batch)
    return begins if told is None else min(begins, told)


def _find_age(file: UPath, now: datetime) -> timedelta:
    return now - datetime.fromtimestamp(file.stat().st_mtime, UTC)
