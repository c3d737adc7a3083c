"""A Delta table's rows, read without a JVM."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from upath import UPath

from tidegate.core.deltalog import DeltaLog


class DeltaRows:
    """One version of a Delta table, asked by SQL.

    By the engine that Delta's Rust library brings along: what its `to_pyarrow_…` give is read by
    threads that call back into Python, and a process that ends meanwhile is aborted.
    """

    def __init__(self, table: DeltaTable) -> None:
        self._table = table

    @classmethod
    def open(cls, table: UPath) -> DeltaRows | None:
        """Open the newest version of a table; None where there is no table."""
        if DeltaLog(table).find_version() is None:
            return None
        return cls(DeltaTable(str(table)))

    @property
    def version(self) -> int:
        """The version that is read."""
        return self._table.version()

    @property
    def columns(self) -> dict[str, str]:
        """Its columns by name, each with the kind of its values."""
        fields = json.loads(self._table.schema().to_json())["fields"]
        return {field["name"]: _spell_type(field["type"]) for field in fields}

    def select(self, columns: str = "*", where: str = "true", rest: str = "") -> pa.Table:
        """Ask for columns of the rows that meet a condition; the rest may group, order or limit."""
        query = f"SELECT {columns} FROM rows WHERE {where} {rest}"  # noqa: S608
        answer = QueryBuilder().register("rows", self._table).execute(query)
        return pa.table(answer.read_all())


def _spell_type(kind: Any) -> str:
    return kind["type"] if isinstance(kind, dict) else str(kind)


def quote_text(text: str) -> str:
    """Spell a text in a condition."""
    return "'" + text.replace("'", "''") + "'"
