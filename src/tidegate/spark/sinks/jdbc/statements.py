"""PostgreSQL's SQL, put together with every name quoted."""

from __future__ import annotations

from collections.abc import Iterable

from psycopg.sql import SQL, Composable, Composed, Identifier

from tidegate.spark.sinks.jdbc.dialect import Staging
from tidegate.spark.sinks.jdbc.layout import Layout

NOTICE_THE_DEAD = (
    "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3"
)
"""Lets go of the locks of a driver whose machine is gone within a minute, not two hours."""

WAIT_BRIEFLY = "SET LOCAL lock_timeout = '5s'"
FIND_TABLE = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = %s"
FIND_STAGINGS = (
    "SELECT tablename FROM pg_tables WHERE schemaname = %s AND starts_with(tablename, %s)"
)
CREATE_LEDGER = SQL(
    "CREATE TABLE IF NOT EXISTS {} (query_id text, sink text, batch_id bigint NOT NULL, "
    "rows bigint, written_at timestamptz NOT NULL, PRIMARY KEY (query_id, sink))"
)
FIND_BATCH = SQL("SELECT batch_id, rows FROM {} WHERE query_id = %s AND sink = %s")
CLAIM_BATCH = SQL(
    "INSERT INTO {} AS held (query_id, sink, batch_id, written_at) VALUES (%s, %s, %s, now()) "
    "ON CONFLICT (query_id, sink) DO UPDATE SET batch_id = EXCLUDED.batch_id, rows = NULL, "
    "written_at = EXCLUDED.written_at WHERE held.batch_id < EXCLUDED.batch_id"
)
NOTE_ROWS = SQL("UPDATE {} SET rows = %s WHERE query_id = %s AND sink = %s")

_TASK = Identifier("tidegate.task")
_TEXTS = ("text", "character varying")


def create_staging(staging: Staging) -> Composed:
    """Create a table that costs no log and is emptied by a crash."""
    return SQL("CREATE UNLOGGED TABLE {} ({} bigint, {}) WITH (autovacuum_enabled = false)").format(
        _name(staging), _TASK, _define(staging.layout)
    )


def create_table(layout: Layout) -> Composed:
    """Create the table that rows go to."""
    keys = SQL(", PRIMARY KEY ({})").format(_list(layout.keys)) if layout.keys else SQL("")
    return SQL("CREATE TABLE IF NOT EXISTS {} ({}{})").format(
        Identifier(layout.schema, layout.table), _define(layout), keys
    )


def copy_in(staging: Staging) -> Composed:
    """Take rows from a client."""
    return SQL("COPY {} ({}, {}) FROM STDIN (FORMAT csv)").format(
        _name(staging), _TASK, _list(staging.layout.names)
    )


def count_staged(staging: Staging) -> Composed:
    """Count the rows of some tasks."""
    return SQL("SELECT count(*) FROM {} WHERE {} = ANY(%s)").format(_name(staging), _TASK)


def append(staging: Staging) -> Composed:
    """Add the rows of some tasks to the table."""
    layout, names = staging.layout, _list(staging.layout.names)
    return SQL("INSERT INTO {} ({}) SELECT {} FROM {} WHERE {} = ANY(%s)").format(
        Identifier(layout.schema, layout.table), names, names, _name(staging), _TASK
    )


def upsert(staging: Staging, *, heals: bool = False) -> Composed:
    """Bring the table up to the newest row of each key; of two that are as new, the larger one.

    One that is as new as the table's takes its place only where it heals.
    """
    layout = staging.layout
    names, keys = _list(layout.names), _list(layout.keys)
    rest = [name for name in layout.names if name not in {*layout.keys, *layout.sequence}]
    newest = [_order(layout, name) for name in (*layout.sequence, *rest)]
    return SQL(
        "INSERT INTO {} AS kept ({}) SELECT DISTINCT ON ({}) {} FROM {} WHERE {} = ANY(%s) "
        "ORDER BY {}, {} ON CONFLICT ({}) {}"
    ).format(
        *(Identifier(layout.schema, layout.table), names, keys, names, _name(staging), _TASK),
        *(keys, SQL(", ").join(newest), keys, _update(layout, heals=heals)),
    )


def _update(layout: Layout, *, heals: bool) -> Composable:
    changed = [name for name in layout.names if name not in layout.keys]
    if not changed:
        return SQL("DO NOTHING")
    assigned = (SQL("{0} = EXCLUDED.{0}").format(Identifier(name)) for name in changed)
    there = [SQL("kept.{}").format(Identifier(name)) for name in layout.sequence]
    here = [
        SQL("EXCLUDED.{}{}").format(Identifier(name), _collate(layout, name))
        for name in layout.sequence
    ]
    unknown = (SQL("{} IS NULL").format(column) for column in there)
    return SQL("DO UPDATE SET {} WHERE ({}) {} ({}) OR {}").format(
        *(SQL(", ").join(assigned), SQL(", ").join(here), SQL(">=" if heals else ">")),
        *(SQL(", ").join(there), SQL(" OR ").join(unknown)),
    )


def _order(layout: Layout, name: str) -> Composed:
    return SQL("{}{} DESC NULLS LAST").format(Identifier(name), _collate(layout, name))


def _collate(layout: Layout, name: str) -> SQL:
    # By code points, as Spark compares texts; not by the rules of a language.
    kind = next(target.kind for target in layout.targets if target.name == name)
    return SQL(' COLLATE "C"') if kind.startswith(_TEXTS) else SQL("")


def _name(staging: Staging) -> Identifier:
    return Identifier(staging.layout.schema, staging.name)


def _define(layout: Layout) -> Composed:
    columns = (SQL("{} {}").format(Identifier(t.name), SQL(t.kind)) for t in layout.targets)
    return SQL(", ").join(columns)


def _list(names: Iterable[str]) -> Composed:
    return SQL(", ").join(map(Identifier, names))
