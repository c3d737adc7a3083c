"""What was done to each table, in plain files beside the ledger.

maintenance/tables/<table>.json    the newest of each kind of step
maintenance/lease/                 who is at it, so that no two are
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum

from pydantic import TypeAdapter, ValidationError
from upath import UPath

from tidegate.core.lease import LeaseFolder
from tidegate.core.settings import Settings
from tidegate.core.storage import read_json, spell_name, write_json


class StepKind(StrEnum):
    """What can be done to a table."""

    OPTIMIZE = "optimize"
    LOG_RETENTION = "log retention"
    CLEAN_LOG = "clean log"
    VACUUM = "vacuum"


@dataclass(frozen=True)
class Done:
    """What one step did."""

    at: str
    reason: str
    seconds: float = 0.0
    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    before_ms: int | None = None
    """VACUUM: up to when the files were taken away that it deleted."""

    def describe(self) -> str:
        """Say it in a few words."""
        parts = [
            f"{count:,} files {verb} ({size / 1e6:,.1f} MB)"
            for verb, count, size in (
                ("removed", self.files_removed, self.bytes_removed),
                ("added", self.files_added, self.bytes_added),
            )
            if count
        ]
        return ", ".join([*parts, f"{self.seconds:.1f} s"])


@dataclass(frozen=True)
class TableRecord:
    """What was last done to a table."""

    table: str
    steps: dict[StepKind, Done] = field(default_factory=dict)


_RECORD: TypeAdapter[TableRecord] = TypeAdapter(TableRecord)


@dataclass(frozen=True)
class MaintenanceBook:
    """What was done to the tables of one pipeline."""

    folder: UPath

    @classmethod
    def of(cls, settings: Settings, pipeline: str) -> MaintenanceBook:
        """Open what was written down for a pipeline."""
        return cls(settings.state_of(pipeline) / "maintenance")

    @property
    def lease(self) -> LeaseFolder:
        """Who tidies up, so that no two do."""
        return LeaseFolder(self.folder / "lease")

    def read(self, table: str) -> TableRecord:
        """Read what was last done to a table; a broken file only means that steps are due again."""
        try:
            value = read_json(self._file(table))
            return _RECORD.validate_python(value) if value else TableRecord(table)
        except (ValidationError, ValueError):
            return TableRecord(table)

    def record(self, table: str, kind: StepKind, done: Done) -> None:
        """Write down what a step did."""
        record = self.read(table)
        steps = {**record.steps, kind: done}
        write_json(self._file(table), asdict(TableRecord(table, steps)))

    def _file(self, table: str) -> UPath:
        return self.folder / "tables" / f"{spell_name(table)}.json"
