"""Copies of a checkpoint, and going back to one.

backups/<time>-<why>/manifest.json    what was copied, when and why
backups/<time>-<why>/files/           the files, as they were
    backups/<time>-<why>/left.json        where the change that it was made for left the query
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256

from pydantic import TypeAdapter, ValidationError
from upath import UPath

from tidegate.core.checkpoint.belongings import find_belongings, name_belongings
from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.errors import SurgeryError
from tidegate.core.storage import (
    find_files,
    list_names,
    open_path,
    read_bytes,
    read_json,
    write_json,
)
from tidegate.core.surgery.change import Change

BACKUP = "backup"
"""Why a backup is made that no change is made for."""
_LEDGER = "runs"
_LEFT = "left.json"


@dataclass(frozen=True)
class Manifest:
    """What a backup holds."""

    made_at: str
    why: str
    checkpoint: str
    query_id: str | None
    committed_batch: int | None
    planned_batch: int | None
    files: dict[str, str] = field(default_factory=dict)
    """The digest of each file, by its path in the checkpoint's parent folder."""


_MANIFEST: TypeAdapter[Manifest] = TypeAdapter(Manifest)


@dataclass(frozen=True)
class Backup:
    """One copy of a checkpoint and of the run ledger beside it."""

    folder: UPath
    manifest: Manifest

    @property
    def name(self) -> str:
        """The name by which it is restored."""
        return self.folder.name

    def note_end(self, checkpoint: UPath) -> None:
        """Note where a change left the query, by which it is known later whether a run went on."""
        write_json(self.folder / _LEFT, _spell_end(checkpoint))

    def find_end(self) -> UPath | None:
        """Find the checkpoint that the change left behind; None where it was cut off."""
        left = read_json(self.folder / _LEFT)
        return open_path(left["checkpoint"]) if left else None

    def is_untouched(self) -> bool:
        """Whether the query is still where the change left it, or half-way there."""
        end = self.find_end()
        return end is None or read_json(self.folder / _LEFT) == _spell_end(end)

    def was_cut_off(self) -> bool:
        """Whether the change that it was made for did not come to its end."""
        return self.manifest.why != BACKUP and not (self.folder / _LEFT).exists()

    def read(self) -> dict[str, bytes]:
        """Read all files, refusing any that is not what was copied."""
        content = {}
        for name, digest in self.manifest.files.items():
            data = read_bytes(self.folder / "files" / name)
            if sha256(data).hexdigest() != digest:
                raise SurgeryError(
                    f"The backup {self.folder} is damaged: {name} is not what was copied.",
                    remedy="Use another backup.",
                )
            content[name] = data
        return content


def _spell_end(checkpoint: UPath) -> dict[str, str | int | None]:
    progress = read_progress(checkpoint)
    return {
        "checkpoint": str(checkpoint),
        "query_id": progress.query_id,
        "committed_batch": progress.committed_batch,
        "planned_batch": progress.planned_batch,
    }


@dataclass(frozen=True)
class Backups:
    """The backups of one checkpoint, beside it."""

    checkpoint: UPath

    @property
    def folder(self) -> UPath:
        """Where they are kept."""
        return find_belongings(self.checkpoint) / "backups"

    def make(self, why: str) -> Backup:
        """Copy the checkpoint and its ledger; the manifest last, so that half a copy is none."""
        now = datetime.now(UTC)
        folder = self.folder / f"{now:%Y%m%dT%H%M%S.%fZ}-{why}"
        files = {}
        for name in self.list_files():
            try:
                data = read_bytes(self.checkpoint.parent / name)
            except FileNotFoundError:
                continue  # purged meanwhile
            copy = folder / "files" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(data)
            files[name] = sha256(data).hexdigest()
        progress = read_progress(self.checkpoint)
        manifest = Manifest(
            made_at=now.isoformat(timespec="milliseconds"),
            why=why,
            checkpoint=str(self.checkpoint),
            query_id=progress.query_id,
            committed_batch=progress.committed_batch,
            planned_batch=progress.planned_batch,
            files=files,
        )
        write_json(folder / "manifest.json", asdict(manifest))
        return Backup(folder, manifest)

    def list_files(self) -> list[str]:
        """List the files that a backup holds: the checkpoint, and the run ledger beside it."""
        parent, beside = self.checkpoint.parent, name_belongings(self.checkpoint)
        return [
            f"{folder}/{name}"
            for folder in (self.checkpoint.name, f"{beside}{_LEDGER}")
            for name in sorted(find_files(parent / folder))
        ]

    def list_all(self) -> list[Backup]:
        """List all backups that are whole, the oldest first."""
        found = (self._open(name) for name in sorted(list_names(self.folder)))
        return [backup for backup in found if backup]

    def find_cut_off(self) -> Backup | None:
        """Find the newest change, if it did not come to its end."""
        names = [name for name in list_names(self.folder) if not name.endswith(f"-{BACKUP}")]
        newest = self._open(max(names)) if names else None
        return newest if newest and newest.was_cut_off() else None

    def find(self, name: str) -> Backup:
        """Find a backup by its name."""
        backups = self.list_all()
        found = next((backup for backup in backups if backup.name == name), None)
        if found is None:
            known = ", ".join(backup.name for backup in backups[-5:]) or "none"
            raise SurgeryError(
                f"There is no backup {name!r} in {self.folder}.", remedy=f"It has {known}."
            )
        return found

    def plan_restore(self, backup: Backup) -> Change:
        """Say what brings all files back to what they were."""
        content = backup.read()
        extra = tuple(name for name in self.list_files() if name not in content)
        return Change(self.checkpoint.parent, content, extra)

    def _open(self, name: str) -> Backup | None:
        folder = self.folder / name
        try:
            manifest = read_json(folder / "manifest.json")
            return None if manifest is None else Backup(folder, _MANIFEST.validate_python(manifest))
        except (ValueError, ValidationError) as error:
            raise SurgeryError(
                f"The backup {folder} is damaged: {error}.", remedy="Move it away."
            ) from error
