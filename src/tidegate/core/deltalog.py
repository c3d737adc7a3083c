"""A Delta table's log, read for its newest version without loading the table."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import Any
from urllib.parse import unquote

from upath import UPath

from tidegate.core.errors import SourceError
from tidegate.core.storage import list_names, open_path, read_bytes, read_json

_COMMIT = re.compile(r"(\d{20})\.json")
_INTERVAL = re.compile(r"(?:interval\s+)?(\d+)\s+(week|day|hour|minute|second)s?", re.IGNORECASE)
_LOG_RETENTION = timedelta(days=30)
_UNKNOWN = -1
"""A version that a time stands for, by the clock of whoever named it."""
_CHANGED = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")


@dataclass(frozen=True)
class TableCommit:
    """One commit of a Delta table, as its log file tells it."""

    version: int
    timestamp_ms: int
    rows: int | None
    """How many rows it wrote; of a MERGE, how many it inserted, updated and deleted."""
    transactions: dict[str, int]
    change_files: int
    """How many files of recorded changes (the change data feed) it has."""
    restored: int | None = None
    """The version that it brought the table back to, where that is what it did."""


@dataclass(frozen=True)
class TableChange:
    """What one commit did to the rows of a Delta table."""

    version: int
    added: tuple[str, ...]
    """The files that it added, as the log spells them."""
    removed: tuple[str, ...]
    recorded: tuple[str, ...]
    """The files of recorded changes (the change data feed)."""
    rearranged: tuple[str, ...]
    """The files that it put rows of others into, as OPTIMIZE does."""
    rows: int | None
    """How many rows were added; None where the log does not tell."""


class DeltaLog:
    """The `_delta_log` of one table.

    Delta's Rust library could be asked instead, but it loads every active file of the table to
    answer; the newest version and its checksum file cost two requests however large the table.
    """

    def __init__(self, table: UPath) -> None:
        self.table = table
        self._folder = table / "_delta_log"

    def find_version(self) -> int | None:
        """Find the newest version; None where there is no table."""
        return max(self._list_versions(), default=None)

    def find_earliest_version(self) -> int | None:
        """Find the earliest version whose changes are still kept."""
        return min(self._list_versions(), default=None)

    def _list_versions(self) -> Iterator[int]:
        matches = (_COMMIT.fullmatch(name) for name in list_names(self._folder))
        return (int(match[1]) for match in matches if match)

    def require_version(self) -> int:
        """Find the newest version, refusing a table that does not exist."""
        version = self.find_version()
        if version is None:
            raise SourceError(
                f"There is no Delta table at {self.table}.",
                remedy="Run the pipeline that writes it first, or correct the table in the spec.",
            )
        return version

    def read_table_id(self, version: int) -> str:
        """Read the id that the table was given when it was created."""
        metadata = self._read_checksum(version).get("metadata") or {}
        return str(metadata.get("id") or self.load(version).metadata().id)

    def read_retention(self, version: int) -> timedelta:
        """Read how long the table keeps the log of its versions."""
        return self.find_interval(version, "delta.logRetentionDuration") or _LOG_RETENTION

    def find_interval(self, version: int, name: str) -> timedelta | None:
        """Find a property of the table that is a length of time; None where it is not said."""
        metadata = self._read_checksum(version).get("metadata") or {}
        said = metadata.get("configuration")
        if said is None:
            said = self.load(version).metadata().configuration
        return _read_interval(said.get(name))

    def find_transaction(self, version: int, app_id: str) -> int | None:
        """Find the newest batch that a writer had recorded as of a version."""
        recorded = self._read_checksum(version).get("setTransactions")
        if recorded is None:
            found = self.load(version).transaction_version(app_id)
            return None if found is None else int(found)
        return next((int(txn["version"]) for txn in recorded if txn.get("appId") == app_id), None)

    def find_batches(self, app_id: str, batch_ids: Collection[int]) -> dict[int, TableCommit]:
        """Find the commits of a writer's newest batches, looking back from the newest version."""
        found: dict[int, TableCommit] = {}
        newest = self.find_version()
        version = -1 if newest is None or not batch_ids else newest
        while version >= 0:
            try:
                commit = self.read_commit(version)
            except FileNotFoundError:
                break  # cleaned up
            batch_id = commit.transactions.get(app_id)
            if batch_id is not None:
                if batch_id in batch_ids:
                    found[batch_id] = commit
                if batch_id <= min(batch_ids):
                    break
            version -= 1
        return found

    def find_version_of(self, app_id: str, batch_id: int) -> int | None:
        """Find the version that a writer's batch made, or the newest one before it."""
        for commit in self._list_effective():
            written = commit.transactions.get(app_id)
            if written is not None and written <= batch_id:
                return commit.version
        return None

    def find_effective_batch(self, app_id: str, looks: int | None = None) -> int | None:
        """Find the newest batch of a writer whose rows the table still has.

        None where there is none, or none among so many of the newest commits.
        """
        batches = (commit.transactions.get(app_id) for commit in self._list_effective())
        return next((batch for batch in islice(batches, looks) if batch is not None), None)

    def holds_rows_after(self, app_id: str, batch_id: int) -> bool:
        """Whether the table still has what a writer's batches after one brought."""
        newest = self.find_effective_batch(app_id)
        return newest is not None and newest > batch_id

    def _list_effective(self) -> Iterator[TableCommit]:
        """List the commits that the table is made of, newest first: what was undone is left out."""
        version = self.find_version()
        while version is not None and version >= 0:
            try:
                commit = self.read_commit(version)
            except FileNotFoundError:
                return  # cleaned up
            yield commit
            if commit.restored == _UNKNOWN:
                return
            version = version - 1 if commit.restored is None else commit.restored

    def read_commit(self, version: int) -> TableCommit:
        """Read one commit: when it was made, how many rows it wrote, for which batches."""
        actions = self.read_actions(version)
        info: dict[str, Any] = next(
            (action["commitInfo"] for action in actions if "commitInfo" in action), {}
        )
        return TableCommit(
            version=version,
            timestamp_ms=int(info.get("timestamp", 0)),
            rows=_count_rows(info, has_files=any("add" in action for action in actions)),
            transactions={
                action["txn"]["appId"]: int(action["txn"]["version"])
                for action in actions
                if "txn" in action
            },
            change_files=sum("cdc" in action for action in actions),
            restored=_read_restored(info),
        )

    def read_change(self, version: int) -> TableChange:
        """Read what one commit did to the rows."""
        actions = self.read_actions(version)
        added = [action["add"] for action in actions if _changes_data(action, "add")]
        removed = [action["remove"] for action in actions if _changes_data(action, "remove")]
        recorded = [action["cdc"]["path"] for action in actions if "cdc" in action]
        counts = [_count_records(add) for add in added]
        return TableChange(
            version,
            tuple(add["path"] for add in added),
            tuple(remove["path"] for remove in removed),
            tuple(recorded),
            tuple(a["add"]["path"] for a in actions if "add" in a and not _changes_data(a, "add")),
            None if None in counts else sum(count or 0 for count in counts),
        )

    def has_file(self, path: str) -> bool:
        """Whether a file that the log names is there."""
        return bool(self.locate(path).exists())

    def locate(self, path: str) -> UPath:
        """Find a file that the log names."""
        decoded = unquote(path)
        return open_path(decoded) if ":/" in decoded else self.table / decoded

    def find_logged_ms(self, version: int) -> int:
        """Find when the log file of a version was written, which is what its clean-up goes by."""
        return int(self._name_commit(version).stat().st_mtime * 1000)

    def read_actions(self, version: int) -> list[dict[str, Any]]:
        """Read all that one commit says."""
        file = self._name_commit(version)
        try:
            lines = read_bytes(file).splitlines()
            return [json.loads(line) for line in lines if line.strip()]
        except ValueError as error:
            raise SourceError(
                f"The Delta log file {file} is broken: {error}.",
                remedy="Restore the table's log from a backup.",
            ) from error

    def _name_commit(self, version: int) -> UPath:
        return self._folder / f"{version:020}.json"

    def _read_checksum(self, version: int) -> dict[str, Any]:
        try:
            checksum = read_json(self._folder / f"{version:020}.crc")
        except ValueError:
            return {}  # cut off while it was written; Delta itself passes over such a file
        return checksum if isinstance(checksum, dict) else {}

    def load(self, version: int) -> Any:
        """Load a version with all its files, by Delta's Rust library."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            return DeltaTable(str(self.table), version=version)
        except DeltaError as error:
            raise SourceError(
                f"The Delta table {self.table} cannot be read: {error}.",
                remedy="Restore the table's log from a backup.",
            ) from error


def _changes_data(action: dict[str, Any], kind: str) -> bool:
    return kind in action and bool(action[kind].get("dataChange", True))


def _count_records(add: dict[str, Any]) -> int | None:
    rows = json.loads(add.get("stats") or "{}").get("numRecords")
    deleted = (add.get("deletionVector") or {}).get("cardinality", 0)
    return None if rows is None else int(rows) - int(deleted)


def _read_interval(spelled: str | None) -> timedelta | None:
    match = _INTERVAL.fullmatch((spelled or "").strip())
    return timedelta(**{f"{match[2].lower()}s": int(match[1])}) if match else None


def _read_restored(info: dict[str, Any]) -> int | None:
    if info.get("operation") != "RESTORE":
        return None
    version = info.get("operationParameters", {}).get("version")
    return int(version) if str(version).isdigit() else _UNKNOWN


def _count_rows(info: dict[str, Any], *, has_files: bool) -> int | None:
    metrics = info.get("operationMetrics", {})
    # What a MERGE calls its output has the rows that it copied as well.
    changed = [int(metrics[name]) for name in _CHANGED if name in metrics]
    if changed:
        return sum(changed)
    if "numOutputRows" in metrics:
        return int(metrics["numOutputRows"])
    return 0 if info.get("operation") == "WRITE" and not has_files else None
