"""Delta tables, written by a library that is not Spark."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

from arro3.core import Array, DataType, Table  # what deltalake itself builds on
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

_TIMES = {
    "commitInfo": "timestamp",
    "add": "modificationTime",
    "remove": "deletionTimestamp",
}


def _age_file(file: Path, by: timedelta) -> None:
    if file.exists():
        moment = file.stat().st_mtime - by.total_seconds()
        os.utime(file, (moment, moment))


class DeltaTableBuilder:
    """Writes a Delta table without Spark: each call of `append` is a version, without checksums."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, *, app_id: str | None = None, batch: int = 0, rows: int | None = None) -> Self:
        """Append rows, for a batch of a writer if one is named, counted as by Spark if told."""
        written = [Transaction(app_id, batch)] if app_id else []
        properties = CommitProperties(app_transactions=written)
        table = Table.from_pydict({"id": Array(list(range(rows or 3)), DataType.int64())})
        write_deltalake(self.path, table, mode="append", commit_properties=properties)
        if rows is not None:
            self._count_as_spark(rows)
        return self

    def date(self, version: int, moment: datetime) -> Self:
        """Let a version have been committed at a moment."""
        self._note(version, timestamp=int(moment.timestamp() * 1000))
        return self

    def optimize(self) -> Self:
        """Merge all files into one, by a version of its own."""
        DeltaTable(self.path).optimize.compact()
        return self

    def delete(self, where: str) -> Self:
        """Delete rows, by a version of its own."""
        DeltaTable(self.path).delete(where)
        return self

    def age(self, version: int, by: timedelta) -> Self:
        """Let a version, and the files that it brought, be older than they are."""
        file, earlier_ms = self.log / f"{version:020}.json", int(by.total_seconds() * 1000)
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for action in actions:
            for kind, field in _TIMES.items():
                if kind in action:
                    action[kind][field] -= earlier_ms
            for kind in ("add", "cdc"):
                if kind in action:
                    _age_file(self.path / unquote(action[kind]["path"]), by)
        file.write_text("\n".join(map(json.dumps, actions)))
        _age_file(file, by)
        # What Spark wrote beside it would not match any more.
        for beside in (f".{file.name}.crc", f"{version:020}.crc", f".{version:020}.crc.crc"):
            (self.log / beside).unlink(missing_ok=True)
        return self

    def restore(self, version: int, *, to: int) -> Self:
        """Let a version be one that brought the table back to another."""
        self._note(version, operation="RESTORE", operationParameters={"version": to})
        return self

    def _count_as_spark(self, rows: int) -> None:
        newest = max(int(file.stem) for file in self.log.glob("*.json"))
        self._note(newest, operationMetrics={"numOutputRows": str(rows)})

    def _note(self, version: int, **info: Any) -> None:
        file = self.log / f"{version:020}.json"
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for action in actions:
            action.get("commitInfo", {}).update(info)
        file.write_text("\n".join(map(json.dumps, actions)))

    def checksum(self, version: int, **content: Any) -> Self:
        """Write a version's checksum file as Delta on Spark does, with this among its content."""
        body = {"tableSizeBytes": 486, "numFiles": 1, "numMetadata": 1, "numProtocol": 1}
        (self.log / f"{version:020}.crc").write_text(json.dumps(body | content))
        return self

    @property
    def log(self) -> Path:
        """The table's log folder."""
        return self.path / "_delta_log"

    @property
    def id(self) -> str:
        """The id that the table was given when it was created."""
        lines = (self.log / f"{0:020}.json").read_text().splitlines()
        actions = map(json.loads, lines)
        return next(action["metaData"]["id"] for action in actions if "metaData" in action)
