"""Copies of a checkpoint at another place: a fork under a new identity, or a move."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from uuid import uuid4

from upath import UPath

from tidegate.core.checkpoint.belongings import find_belongings
from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.errors import SurgeryError
from tidegate.core.ledger import RENEWAL, Baseline
from tidegate.core.storage import find_files, list_names, read_bytes, spell_for_spark, write_json

# Where an operator may change with a batch, Spark notes the whole paths of its schemas.
_NOTES_PATHS = "/_metadata/v2/"
_SCHEMA_PATH = re.compile(rb'"[^"]*(/state/\d+/_stateSchema/[^"]*")')
_BESIDE = ("runs", "sinks", "skips", "replays")
"""What a pipeline's state folder has beside the checkpoint, and that goes along with it."""


@dataclass(frozen=True)
class CheckpointCopy:
    """A checkpoint that is copied to another path or store."""

    source: UPath
    target: UPath
    is_move: bool
    """Whether the query goes on at the new place, as the same one."""

    def describe(self) -> Iterator[str]:
        """Say what is done, a line a file."""
        for origin, copy in self._list_pairs():
            yield f"{'move' if self.is_move else 'copy'} {origin} to {copy}"
        if not self.is_move:
            yield f"write {self.target / 'metadata'} with a new query id"

    def check(self) -> None:
        """Refuse a place that is taken."""
        if list_names(self.target):
            raise SurgeryError(
                f"{self.target} is not empty.", remedy="Name a folder that does not exist yet."
            )

    def apply(self) -> None:
        """Copy all files, see that they arrived, and of a move delete the originals."""
        pairs = list(self._list_pairs())
        copied = [(origin, copy) for origin, copy in pairs if not _is_sum_of_path(origin)]
        for origin, copy in copied:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(self._read(origin))
        if not self.is_move:
            (self.target / ".metadata.crc").unlink(missing_ok=True)
            self._renew(str(uuid4()))
            return
        for origin, copy in copied:
            if self._read(origin) != read_bytes(copy):
                raise SurgeryError(
                    f"{copy} is not what was copied.", remedy="Nothing was deleted; try again."
                )
        for origin, _ in pairs:
            origin.unlink(missing_ok=True)

    def take_back(self) -> None:
        """Delete the copy again."""
        for _, copy in self._list_pairs(of_target=True):
            copy.unlink(missing_ok=True)
        if not self.is_move:
            (find_belongings(self.target) / "runs" / RENEWAL).unlink(missing_ok=True)

    def _read(self, origin: UPath) -> bytes:
        """Read a file as it is to be at the new place."""
        data = read_bytes(origin)
        if _NOTES_PATHS not in origin.path:
            return data
        place = f'"{spell_for_spark(str(self.target))}'.encode()
        return _SCHEMA_PATH.sub(lambda match: place + match[1], data)

    def _renew(self, query_id: str) -> None:
        (self.target / "metadata").write_bytes(json.dumps({"id": query_id}).encode())
        renewed = Baseline(query_id, read_progress(self.target).committed_batch)
        write_json(find_belongings(self.target) / "runs" / RENEWAL, asdict(renewed))

    def _list_pairs(self, *, of_target: bool = False) -> Iterator[tuple[UPath, UPath]]:
        folders = [(self.source, self.target)]
        if self.is_move:
            old, new = find_belongings(self.source), find_belongings(self.target)
            folders += [(old / name, new / name) for name in _BESIDE]
        for source, target in folders:
            for name in sorted(find_files(target if of_target else source)):
                yield source / name, target / name


def _is_sum_of_path(file: UPath) -> bool:
    """Whether it is the checksum of a file that is another one at the new place."""
    return _NOTES_PATHS in file.path and file.name.endswith(".crc")
