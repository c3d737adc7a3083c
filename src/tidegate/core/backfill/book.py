"""What each backfill was to do and did, in plain files beside the live checkpoint.

    backfills/<id>/plan.json          the range, its slices, and what becomes of rows that are there
    backfills/<id>/slices/<n>.json    what a slice did, written once it is done
    backfills/<id>/lease/<n>/         who runs a slice, so that no two do
    backfills/<id>/lanes/<n>/         who may run a slice at all, so that no more do than asked for
    backfills/<id>/begun/<n>.json     a slice that was let in once, be it done or not
    backfills/<id>/staged/<sink>/     the rows of a range that is to be swapped
    backfills/<id>/staged/aside/<n>/  what a slice puts aside, until the quarantine takes it
    backfills/<id>/swaps/<sink>.json  how many rows of the range a table has since it was swapped
    backfills/<id>/verification.json  whether it all adds up

Nothing of it is read by live runs. A slice that is written down is never run again.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from pydantic import TypeAdapter, ValidationError
from upath import UPath

from tidegate.core.backfill.range import Range
from tidegate.core.backfill.request import Mode, Request
from tidegate.core.backfill.survey import Found
from tidegate.core.errors import BackfillError, LedgerError
from tidegate.core.lease import LeaseFolder
from tidegate.core.passage import Passage
from tidegate.core.settings import Settings
from tidegate.core.shape import Shape
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.storage import list_names, read_json, remove_tree, write_json

_PREFIX = "backfill__"
_SAFE = re.compile(r"[A-Za-z0-9_.:+-]{1,150}")


@dataclass(frozen=True)
class Backfill:
    """A range that is read once more."""

    id: str
    mode: Mode
    range: Range
    slices: tuple[Range, ...]
    begun_at: str
    parallelism: int = 1
    """How many slices may be run at once."""
    rows: int | None = None
    """How many rows the source has in the range, where its log tells."""
    digest: str = ""
    """Of the spec and its Python: all slices are made alike, or it is begun anew."""
    asked: dict[str, Any] = field(default_factory=dict)
    """What was asked for, by which one that is asked for again is known."""


@dataclass(frozen=True)
class SliceResult:
    """What became of the rows of a slice."""

    number: int
    rows_read: int
    malformed: int
    passages: dict[str, Passage]
    """How rows passed the rules of all sinks, by no name, and of each sink."""
    written: dict[str, int | None]
    """Rows by sink; None where a sink does not tell."""
    quarantined: int
    failed: dict[str, int] = field(default_factory=dict)
    """How many rows failed each rule."""
    seconds: float = 0.0


_BACKFILL: TypeAdapter[Backfill] = TypeAdapter(Backfill)
_RESULT: TypeAdapter[SliceResult] = TypeAdapter(SliceResult)


@dataclass(frozen=True)
class Backfills:
    """The backfills of one pipeline."""

    pipeline: Pipeline
    settings: Settings

    def begin(self, request: Request, found: Found, name: str | None = None) -> Backfill:
        """Write down what is to be done."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        slices: list[Range] = [*found.range.split(request.slices)]
        backfill = Backfill(
            *(_name(name or now), request.mode, found.range, tuple(slices), now),
            *(request.parallelism, found.rows, self._digest, request.model_dump(mode="json")),
        )
        write_json(
            self.folder_of(backfill.id) / "plan.json", _BACKFILL.dump_python(backfill, mode="json")
        )
        return backfill

    def find_named(self, name: str, request: Request) -> Backfill | None:
        """Find a backfill by the name that it was given when it began."""
        if _name(name) not in self.list_ids():
            return None
        found = self.read(_name(name))
        if found.asked != request.model_dump(mode="json"):
            raise BackfillError(
                f"{found.id} was begun before, and was asked for something else; take another name "
                "for the run"
            )
        return found

    def is_verified(self, backfill: Backfill) -> bool:
        """Whether nobody will look at a backfill any more."""
        file = self.folder_of(backfill.id) / "verification.json"
        return file.exists() and self.is_finished(backfill)

    def refuse_changed(self, backfill: Backfill) -> None:
        """Refuse to go on by another spec: some slices would be made by the old one."""
        if backfill.digest != self._digest:
            raise BackfillError(
                f"the spec of {self.pipeline.name}, or Python beside it, changed since {backfill.id} "
                "began; begin it anew, so that all slices are made alike"
            )

    def find_running(self) -> str | None:
        """Find a process that is at work on a backfill, and say who it is."""
        for backfill_id in self.list_ids():
            if self.is_verified(self.read(backfill_id)):
                continue
            for name in list_names(self.folder_of(backfill_id) / "lease"):
                held = LeaseFolder(self.folder_of(backfill_id) / "lease" / name).find_held()
                if held:
                    return str(held.holder)
        return None

    def is_finished(self, backfill: Backfill) -> bool:
        """Whether nothing of a backfill is left to do."""
        if len(self.read_done(backfill.id)) < len(backfill.slices):
            return False
        swapped = self.read_swaps(backfill.id)
        return backfill.mode is not Mode.REPLACE or all(
            sink.name in swapped for sink in self.pipeline.delta_sinks
        )

    def read(self, backfill_id: str) -> Backfill:
        """Read what is to be done."""
        file = self.folder_of(backfill_id) / "plan.json"
        value = read_json(file) if backfill_id.startswith(_PREFIX) else None
        if value is None:
            told = ", ".join(sorted(self.list_ids())[-5:]) or "none"
            raise BackfillError(
                f"{self.pipeline.name} has no backfill {backfill_id!r}; it has {told}"
            )
        try:
            return _BACKFILL.validate_python(value)
        except ValidationError as error:
            raise LedgerError(
                f"The file {file} is broken: {error}.",
                remedy="Restore it from a backup, or begin the backfill anew.",
            ) from error

    def record_slice(self, backfill_id: str, result: SliceResult) -> None:
        """Write down what a slice did."""
        file = self.folder_of(backfill_id) / "slices" / f"{result.number}.json"
        write_json(file, asdict(result))

    def read_slice(self, backfill_id: str, number: int) -> SliceResult | None:
        """Read what a slice did; None where it is not done."""
        value = read_json(self.folder_of(backfill_id) / "slices" / f"{number}.json")
        return None if value is None else _RESULT.validate_python(value)

    def read_done(self, backfill_id: str) -> dict[int, SliceResult]:
        """Read what the slices did that are done."""
        folder = self.folder_of(backfill_id) / "slices"
        names = (name for name in list_names(folder) if name.removesuffix(".json").isdigit())
        found = (_RESULT.validate_python(read_json(folder / name)) for name in names)
        return {result.number: result for result in sorted(found, key=lambda one: one.number)}

    def record_swap(self, backfill_id: str, sink: str, rows: int) -> None:
        """Write down how many rows of the range a sink's table has since it was swapped."""
        write_json(self.folder_of(backfill_id) / "swaps" / f"{sink}.json", {"rows": rows})

    def read_swaps(self, backfill_id: str) -> dict[str, int]:
        """Read how many rows of the range each table has that was swapped."""
        folder = self.folder_of(backfill_id) / "swaps"
        names = (name for name in list_names(folder) if name.endswith(".json"))
        swaps = {name.removesuffix(".json"): read_json(folder / name) or {} for name in names}
        return {sink: swap["rows"] for sink, swap in swaps.items() if swap}

    def record_verification(self, backfill_id: str, value: dict[str, Any]) -> None:
        """Write down whether it all adds up."""
        write_json(self.folder_of(backfill_id) / "verification.json", value)

    def drop_staged(self, backfill_id: str) -> None:
        """Delete the rows that waited for a swap."""
        remove_tree(self.folder_of(backfill_id) / "staged")

    def folder_of(self, backfill_id: str) -> UPath:
        """Find where a backfill keeps what is its own."""
        return self._folder / backfill_id

    @property
    def _digest(self) -> str:
        return Shape.of(self.pipeline, self.settings.pipelines).digest

    def list_ids(self) -> list[str]:
        """List all backfills, by their ids."""
        return [name for name in list_names(self._folder) if name.startswith(_PREFIX)]

    @property
    def _folder(self) -> UPath:
        return self.settings.state_of(self.pipeline.name) / "backfills"


def _name(name: str) -> str:
    """Make an id of a name: the name itself where it can be part of any path."""
    is_safe = _SAFE.fullmatch(name) is not None
    return _PREFIX + (name if is_safe else sha256(name.encode()).hexdigest()[:32])
