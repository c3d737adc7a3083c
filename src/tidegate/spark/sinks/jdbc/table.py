"""A table as it is found in PostgreSQL, and whether it can take what a sink writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from pyspark.sql.types import StructField, StructType

from tidegate.core.errors import SinkError
from tidegate.core.spec.sinks.jdbc import JdbcMode, JdbcSink
from tidegate.spark.sinks.jdbc.layout import Layout, Target, choose_columns, lay_out
from tidegate.spark.sinks.jdbc.types import ENUM, TYPES, fits, map_type

_LONGEST_NAME = 63
_TABLE_KINDS = ("r", "p")  # plain and partitioned
_READ_SCHEMA = """
SELECT s.name, n.oid IS NOT NULL, coalesce(has_schema_privilege(n.oid, 'CREATE'), false)
FROM (SELECT coalesce(%s, current_schema()) AS name) s
LEFT JOIN pg_namespace n ON n.nspname = s.name
"""
_READ_TABLE = """
SELECT c.oid, c.relkind::text,
       ARRAY(SELECT right_ FROM unnest(ARRAY['INSERT', 'SELECT', 'UPDATE']) AS right_
             WHERE has_table_privilege(c.oid, right_))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s
"""
_READ_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod),
       CASE t.typtype WHEN 'd' THEN format_type(t.typbasetype, t.typtypmod)
                      WHEN 'e' THEN %s ELSE format_type(a.atttypid, a.atttypmod) END,
       a.attnotnull AND NOT a.atthasdef AND a.attidentity = '',
       a.attgenerated <> '' OR a.attidentity = 'a'
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_READ_UNIQUE = """
SELECT ARRAY(SELECT a.attname::text FROM unnest(i.indkey[0:i.indnkeyatts - 1]) AS key
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = key)
FROM pg_index i
WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indimmediate
  AND i.indpred IS NULL AND i.indexprs IS NULL
"""


@dataclass(frozen=True)
class FoundColumn:
    """A column of a table that exists."""

    name: str
    kind: str
    base: str
    """The type that its values are of: of a domain, the one below it."""
    is_required: bool
    is_generated: bool


@dataclass(frozen=True)
class FoundTable:
    """A table that exists."""

    kind: str
    rights: frozenset[str]
    columns: tuple[FoundColumn, ...]
    unique: tuple[frozenset[str], ...]
    """The sets of columns that no two rows have the same values of."""

    def find(self, name: str) -> FoundColumn | None:
        """Find the column that a name means: spelled the same, or the only one if case is ignored."""
        exact = [column for column in self.columns if column.name == name]
        alike = [column for column in self.columns if column.name.lower() == name.lower()]
        return next(iter(exact or (alike if len(alike) == 1 else [])), None)


def read_table(session: Connection[Any], schema: str, table: str) -> FoundTable | None:
    """Read what a table is like; None where there is none."""
    found = session.execute(_READ_TABLE, (schema, table)).fetchone()
    if found is None:
        return None
    oid, kind, rights = found
    columns = session.execute(_READ_COLUMNS, (ENUM, oid)).fetchall()
    unique = session.execute(_READ_UNIQUE, (oid,)).fetchall()
    return FoundTable(
        kind,
        frozenset(rights),
        tuple(FoundColumn(*column) for column in columns),
        tuple(frozenset(names) for (names,) in unique),
    )


def locate_table(session: Connection[Any], sink: JdbcSink) -> tuple[str, str]:
    """Find the schema and the name of a sink's table, and that tables can be made beside it."""
    named, _, table = sink.table.rpartition(".")
    [(schema, exists, may_create)] = session.execute(_READ_SCHEMA, (named or None,)).fetchall()
    if not exists:
        raise SinkError(
            f"The table {sink.table} cannot be written: the database has no schema "
            f"{named or 'on the search path'}.",
            remedy="Create the schema, or correct the sink's table or connection.",
        )
    if not may_create:
        raise SinkError(
            f"The table {sink.table} cannot be written: the connection's user may not create "
            f"tables in the schema {schema}.",
            cause="Batches are staged there, and tidegate_batches tells which ones it has.",
            remedy=f'GRANT CREATE ON SCHEMA "{schema}" to the user.',
        )
    return schema, table


def plan_layout(session: Connection[Any], sink: JdbcSink, rows: StructType) -> Layout:
    """Find where each column goes; tell all that is wrong at once."""
    chosen = choose_columns(sink, rows)
    place = locate_table(session, sink)
    table = read_table(session, *place)
    problems = list(_find_unmapped(chosen))
    if table is not None and not problems:
        problems = list(_find_problems(table, sink, chosen))
    if problems:
        raise SinkError(
            f"The table {sink.table} cannot take the rows: {'; '.join(problems)}.",
            cause=f"The rows are {chosen.simpleString()}.",
            remedy="Cast or leave out columns in the last step, or change the table.",
        )
    targets = [_aim(field, table) for field in chosen.fields]
    return lay_out(sink, place, targets, is_new=table is None)


def _aim(field: StructField, table: FoundTable | None) -> Target:
    found = table.find(field.name) if table else None
    if found:
        return Target(field.name, found.name, found.kind)
    return Target(field.name, field.name, map_type(field.dataType) or "")


def _find_unmapped(rows: StructType) -> Iterator[str]:
    for field in rows.fields:
        if map_type(field.dataType) is None:
            allowed = ", ".join(kind.typeName() for kind in TYPES)
            yield (
                f"PostgreSQL has no type for {field.name} {field.dataType.simpleString()}, "
                f"only for {allowed}"
            )
        if len(field.name.encode()) > _LONGEST_NAME:
            yield f"the name {field.name} is longer than {_LONGEST_NAME} bytes"


def _find_problems(table: FoundTable, sink: JdbcSink, rows: StructType) -> Iterator[str]:
    if table.kind not in _TABLE_KINDS:
        yield "it is no table, but a view or something else"
    for field in rows.fields:
        yield from _find_problem(table, field)
    named = {field.name.lower() for field in rows.fields}
    required = [
        column.name
        for column in table.columns
        if column.is_required and column.name.lower() not in named
    ]
    if required:
        yield f"it needs {', '.join(required)}, which the rows do not have"
    needed = ["INSERT", "SELECT", "UPDATE"] if sink.mode is JdbcMode.UPSERT else ["INSERT"]
    missing = [right for right in needed if right not in table.rights]
    if missing:
        yield f"the connection's user lacks the right to {', '.join(missing)}"
    keys = frozenset(column.name for column in map(table.find, sink.keys) if column)
    if keys and keys not in table.unique:
        yield f"it has no unique index on just {', '.join(sink.keys)}"


def _find_problem(table: FoundTable, field: StructField) -> Iterator[str]:
    found = table.find(field.name)
    if found is None:
        yield f"it has no column {field.name} {map_type(field.dataType)}"
    elif found.is_generated:
        yield f"it makes up its column {found.name} itself"
    elif not fits(field.dataType, found.base):
        yield f"its column {found.name} is {found.kind}, and the rows have {field.dataType.simpleString()}"
