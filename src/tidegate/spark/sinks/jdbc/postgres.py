"""PostgreSQL: staging, and the one transaction that a batch becomes visible by."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Identifier
from pyspark.sql import Column
from pyspark.sql.types import StructField, StructType

from tidegate.core.database import DatabaseConnection
from tidegate.core.errors import SinkAwayError, SinkError
from tidegate.core.spec.sinks.jdbc import JdbcSink
from tidegate.spark.sinks.jdbc import statements
from tidegate.spark.sinks.jdbc.complaint import describe
from tidegate.spark.sinks.jdbc.copy import Copier
from tidegate.spark.sinks.jdbc.dialect import Held, Mark, Staging
from tidegate.spark.sinks.jdbc.layout import Layout, choose_columns
from tidegate.spark.sinks.jdbc.session import open_session
from tidegate.spark.sinks.jdbc.table import locate_table, plan_layout, read_table
from tidegate.spark.sinks.jdbc.types import shape, unmap_type

LEDGER = "tidegate_batches"
"""The table of the newest batch of each query and sink, beside the tables that they write."""

_STAGING = "tidegate_staging"


@dataclass(frozen=True)
class Postgres:
    """A table of a PostgreSQL database."""

    connection: DatabaseConnection
    sink: JdbcSink

    def check(self, rows: StructType) -> None:
        """Refuse rows that the table could not take, telling all that is wrong."""
        with self._open() as session:
            plan_layout(session, self.sink, rows)

    def read_schema(self) -> StructType | None:
        """Read the table's columns; None where it is yet to be created."""
        with self._open() as session:
            table = read_table(session, *locate_table(session, self.sink))
        if table is None:
            return None
        return StructType([StructField(c.name, unmap_type(c.base)) for c in table.columns])

    def begin(self, rows: StructType, mark: Mark) -> Staging | Held:
        """Make room for a batch's rows, unless the database has them."""
        with self._open() as session:
            schema, _ = locate_table(session, self.sink)
            self._create_ledger(session, schema)
            held = self._find_held(session, schema, mark)
            if held:
                return held
            layout = plan_layout(session, self.sink, rows)
            staging = Staging(layout, f"{_name_stagings(mark)}_{mark.batch_id}_{uuid4().hex[:8]}")
            session.execute(statements.create_staging(staging))
        return staging

    def shape(self, rows: StructType) -> list[Column]:
        """Spell the columns as COPY takes them."""
        chosen = choose_columns(self.sink, rows).fields
        # Numbered, because mapInArrow stumbles over names that need quotes.
        return [shape(f.name, f.dataType).alias(f"c{n}") for n, f in enumerate(chosen)]

    def open_copy(self, staging: Staging) -> Callable[[Iterator[Any]], Iterator[Any]]:
        """Make the function by which executors fill the staging."""
        statement = statements.copy_in(staging).as_string()
        names = staging.layout.names
        return Copier(self.connection, statement, self.sink.table, names).copy

    def commit(
        self, staging: Staging, mark: Mark, tasks: Collection[int], rows: int, *, heals: bool
    ) -> Held | int:
        """Write what tasks staged and the batch's mark in one transaction; how many rows changed."""
        layout = staging.layout
        with self._open() as session:
            with session.transaction():
                if not self._claim(session, layout.schema, mark):
                    return self._find_held(session, layout.schema, mark) or Held(None)
                if layout.is_new:
                    session.execute(statements.create_table(layout))
                changed = self._move(session, staging, sorted(tasks), rows, heals=heals)
                self._note_rows(session, layout.schema, mark, changed)
            with suppress(psycopg.Error):  # the batch is written; the next one sweeps again
                self._sweep(session, layout, mark)
        return changed

    def clean(self, staging: Staging) -> None:
        """Drop a staging that is of no use any more, if that can be done now."""
        with suppress(SinkError), self._open() as session:
            self._drop(session, staging.layout.schema, staging.name)

    @contextmanager
    def _open(self) -> Iterator[Connection[Any]]:
        with open_session(self.connection) as session:
            try:
                session.execute(statements.NOTICE_THE_DEAD)
                yield session
            except psycopg.Error as error:
                # Not chained: what PostgreSQL tells quotes values.
                raise describe(error, self.connection.name, self.sink.table) from None

    @staticmethod
    def _create_ledger(session: Connection[Any], schema: str) -> None:
        if session.execute(statements.FIND_TABLE, (schema, LEDGER)).fetchone():
            return
        with session.transaction():  # two that create a table at once would collide
            session.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (LEDGER,))
            session.execute(statements.CREATE_LEDGER.format(Identifier(schema, LEDGER)))

    @staticmethod
    def _find_held(session: Connection[Any], schema: str, mark: Mark) -> Held | None:
        statement = statements.FIND_BATCH.format(Identifier(schema, LEDGER))
        found = session.execute(statement, (mark.query_id, mark.sink)).fetchone()
        if found is None or found[0] < mark.batch_id:
            return None
        newest, rows = found
        return Held(rows if newest == mark.batch_id else None)

    @staticmethod
    def _claim(session: Connection[Any], schema: str, mark: Mark) -> bool:
        # Another driver with the same batch waits here until this one commits or fails.
        statement = statements.CLAIM_BATCH.format(Identifier(schema, LEDGER))
        claimed = session.execute(statement, (mark.query_id, mark.sink, mark.batch_id))
        return claimed.rowcount == 1

    @staticmethod
    def _note_rows(session: Connection[Any], schema: str, mark: Mark, rows: int) -> None:
        statement = statements.NOTE_ROWS.format(Identifier(schema, LEDGER))
        session.execute(statement, (rows, mark.query_id, mark.sink))

    def _move(
        self,
        session: Connection[Any],
        staging: Staging,
        tasks: list[int],
        rows: int,
        *,
        heals: bool,
    ) -> int:
        if not rows:
            return 0
        is_upsert = bool(staging.layout.keys)
        staged = None
        if is_upsert:
            [(staged,)] = session.execute(statements.count_staged(staging), (tasks,)).fetchall()
        move = statements.upsert(staging, heals=heals) if is_upsert else statements.append(staging)
        changed = session.execute(move, (tasks,)).rowcount
        if (changed if staged is None else staged) != rows:
            # A server that crashes empties unlogged tables.
            raise SinkAwayError(
                f"Rows that were staged for {self.sink.table} are gone.",
                cause="The database crashed since they were staged.",
                remedy="Nothing of the batch is in the table. The next attempt takes it again.",
            )
        return changed

    def _sweep(self, session: Connection[Any], layout: Layout, mark: Mark) -> None:
        """Drop what this batch staged, and what drivers that were killed have left."""
        prefix = f"{_name_stagings(mark)}_"
        names = session.execute(statements.FIND_STAGINGS, (layout.schema, prefix)).fetchall()
        for (name,) in names:
            self._drop(session, layout.schema, name)

    @staticmethod
    def _drop(session: Connection[Any], schema: str, name: str) -> None:
        # A task that nobody waits for may still hold it; the next batch tries again.
        with suppress(psycopg.errors.LockNotAvailable), session.transaction():
            session.execute(statements.WAIT_BRIEFLY)
            session.execute(SQL("DROP TABLE IF EXISTS {}").format(Identifier(schema, name)))


def _name_stagings(mark: Mark) -> str:
    digest = sha256(f"{mark.query_id}:{mark.sink}".encode()).hexdigest()[:12]
    return f"{_STAGING}_{digest}"
