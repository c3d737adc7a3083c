"""The files of a Delta table: those that it has, and those that its versions brought and took away."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from tidegate.core.deltalog import DeltaLog

_COLUMNS = ("path", "size_bytes", "modification_time")
_PARTITION = "partition"


@dataclass(frozen=True)
class TableFile:
    """A file that a version of a table is made of."""

    path: str
    """As the log spells it."""
    size_bytes: int
    written_ms: int
    partition: tuple[Any, ...] = ()


@dataclass(frozen=True)
class FileLog:
    """What one commit did to the files of a table."""

    version: int
    timestamp_ms: int
    added: dict[str, int]
    """When each file was written that brought rows."""
    removed: dict[str, int]
    """When each file was taken away."""
    deleted: tuple[str, ...]
    """Those of them that took rows away with them, as OPTIMIZE does not."""
    recorded: tuple[str, ...]
    """The files of recorded changes (the change data feed)."""


class TableHistory:
    """The files of a table as its log tells them, each commit read once."""

    def __init__(self, log: DeltaLog) -> None:
        self.log = log
        self._read: dict[int, FileLog] = {}

    @cached_property
    def newest(self) -> int:
        """The newest version."""
        return self.log.require_version()

    @cached_property
    def earliest(self) -> int:
        """The earliest version whose commit is still there."""
        return self.log.find_earliest_version() or 0

    @cached_property
    def active(self) -> dict[str, TableFile]:
        """The files that the table is made of now."""
        return self.list_files(self.newest)

    def list_files(self, version: int) -> dict[str, TableFile]:
        """List the files that a version is made of."""
        table = pa.table(self.log.load(version).get_add_actions())
        partitions = (
            [tuple(part.values()) for part in table.column(_PARTITION).to_pylist()]
            if _PARTITION in table.column_names
            else [()] * table.num_rows
        )
        told = (table.column(name).to_pylist() for name in _COLUMNS)
        files = (TableFile(*file) for file in zip(*told, partitions, strict=True))
        return {file.path: file for file in files}

    def read(self, version: int) -> FileLog:
        """Read what one commit did."""
        if version not in self._read:
            self._read[version] = _read_commit(version, self.log.read_actions(version))
        return self._read[version]

    def read_from(self, version: int) -> Iterator[FileLog]:
        """Read what the commits from one on did, as far as they are there."""
        return map(self.read, range(max(version, self.earliest), self.newest + 1))

    def find_first_since(self, moment_ms: float) -> int:
        """Find the first version of a time or later; the one after the newest where there is none."""
        versions = range(self.earliest, self.newest + 1)
        return self.earliest + bisect_left(
            versions, moment_ms, key=lambda version: self.read(version).timestamp_ms
        )


def _read_commit(version: int, actions: list[dict[str, Any]]) -> FileLog:
    added = _pick(actions, "add")
    removed = _pick(actions, "remove")
    info = next(iter(_pick(actions, "commitInfo")), {})
    timestamp_ms = int(info.get("timestamp", 0))
    return FileLog(
        version,
        timestamp_ms,
        {
            add["path"]: int(add.get("modificationTime", timestamp_ms))
            for add in added
            if add.get("dataChange", True)
        },
        {file["path"]: int(file.get("deletionTimestamp") or timestamp_ms) for file in removed},
        tuple(file["path"] for file in removed if file.get("dataChange", True)),
        tuple(file["path"] for file in _pick(actions, "cdc")),
    )


def _pick(actions: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [action[kind] for action in actions if kind in action]
