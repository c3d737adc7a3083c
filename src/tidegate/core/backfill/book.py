"""What each backfill was to do and did, in plain files beside the live checkpoint.

    backfills/<id>/plan.json          the range, its slices, and what becomes of rows that are there
    backfills/<id>/slices/<n>.json    what a slice did, written once it is done
    backfills/<id>/staged/<sink>/     the rows of a range that is to be swapped

Nothing of it is read by live runs. A slice that is written down is never run again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from pydantic import TypeAdapter, ValidationError
from upath import UPath

from tidegate.core.backfill.range import Range
from tidegate.core.backfill.request import Mode, Request
from tidegate.core.errors import BackfillError, LedgerError
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.storage import list_names, read_json, write_json

_PREFIX = "backfill__"


@dataclass(frozen=True)
class Backfill:
    """A range that is read once more."""

    id: str
    mode: Mode
    range: Range
    slices: tuple[Range, ...]
    begun_at: str


@dataclass(frozen=True)
class SliceResult:
    """What became of the rows of a slice."""

    number: int
    rows_read: int | None
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

    def begin(self, request: Request, whole: Range) -> Backfill:
        """Write down what is to be done."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        slices: list[Range] = [*whole.split(request.slices)]
        backfill = Backfill(f"{_PREFIX}{now}", request.mode, whole, tuple(slices), now)
        write_json(
            self.folder_of(backfill.id) / "plan.json", _BACKFILL.dump_python(backfill, mode="json")
        )
        return backfill

    def read(self, backfill_id: str) -> Backfill:
        """Read what is to be done."""
        file = self.folder_of(backfill_id) / "plan.json"
        value = read_json(file) if backfill_id.startswith(_PREFIX) else None
        if value is None:
            known = sorted(name for name in list_names(self._folder) if name.startswith(_PREFIX))
            told = ", ".join(known[-5:]) or "none"
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

    def read_done(self, backfill_id: str) -> dict[int, SliceResult]:
        """Read what the slices did that are done."""
        folder = self.folder_of(backfill_id) / "slices"
        names = (name for name in list_names(folder) if name.removesuffix(".json").isdigit())
        found = (_RESULT.validate_python(read_json(folder / name)) for name in names)
        return {result.number: result for result in sorted(found, key=lambda one: one.number)}

    def folder_of(self, backfill_id: str) -> UPath:
        """Find where a backfill keeps what is its own."""
        return self._folder / backfill_id

    @property
    def _folder(self) -> UPath:
        return self.settings.state_of(self.pipeline.name) / "backfills"
