"""What an executor does: send the rows of a partition to the staging table by COPY."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv
from pyspark import TaskContext

from tidegate.core.database import DatabaseConnection
from tidegate.core.errors import SinkAwayError, SinkError
from tidegate.spark.sinks.jdbc.complaint import describe, describe_nul
from tidegate.spark.sinks.jdbc.session import open_session

OUTCOME = "task long, rows long, error string"
"""What each task tells, as Spark's DDL."""

_OUTCOME = pa.schema([("task", pa.int64()), ("rows", pa.int64()), ("error", pa.string())])
_UTC = "SET LOCAL TIME ZONE 'UTC'"
_CSV = csv.WriteOptions(include_header=False)


@dataclass(frozen=True)
class Copier:
    """Copies partitions to a staging table; each row says by which task it came.

    A task may be tried twice, and both tries may get their rows into the table; only those of tasks
    that have told their outcome count.
    """

    connection: DatabaseConnection
    statement: str
    title: str
    """What the table is called in words."""
    names: tuple[str, ...]
    """What its columns are called, in the order of the rows'."""

    def copy(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Send a partition; what went wrong is told, not raised, since no retry would mend it."""
        context = TaskContext.get()
        task = context.taskAttemptId() if context else 0
        rows, told = 0, None
        try:
            rows = self._send(task, batches)
        except SinkError as error:
            told = pack(error)
            if isinstance(error, SinkAwayError):
                deque(batches, maxlen=0)  # what is observed of the rows is to be told all the same
        yield pa.RecordBatch.from_pylist([{"task": task, "rows": rows, "error": told}], _OUTCOME)

    def _send(self, task: int, batches: Iterator[pa.RecordBatch]) -> int:
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return 0
        with open_session(self.connection) as session:
            try:
                with session.transaction():
                    session.execute(_UTC)
                    with session.cursor().copy(self.statement) as copy:
                        return sum(
                            self._write(copy, task, each) for each in chain([first], batches)
                        )
            except psycopg.Error as error:
                raise describe(error, self.connection.name, self.title) from None

    def _write(self, copy: psycopg.Copy, task: int, batch: pa.RecordBatch) -> int:
        encoded = encode(batch, task)
        if encoded.find(b"\0") >= 0:  # in the midst of a COPY, PostgreSQL does not tell the column
            raise describe_nul(self.title, self._find_nul(batch))
        copy.write(encoded)
        return int(batch.num_rows)

    def _find_nul(self, batch: pa.RecordBatch) -> str:
        named = zip(self.names, batch.columns, strict=True)
        texts = ((name, column) for name, column in named if pa.types.is_string(column.type))
        holding = (name for name, text in texts if pc.any(pc.match_substring(text, "\0")).as_py())
        return next(holding, "")


def encode(batch: pa.RecordBatch, task: int) -> bytes:
    """Spell rows as PostgreSQL's CSV: a null is nothing, an empty text is quoted."""
    columns = [_to_utc(column) for column in batch.columns]
    numbers = pa.repeat(pa.scalar(task), batch.num_rows)
    table = pa.RecordBatch.from_arrays([numbers, *columns], ["task", *batch.schema.names])
    buffer = pa.BufferOutputStream()
    csv.write_csv(table, buffer, _CSV)
    return bytes(buffer.getvalue().to_pybytes())


def pack(error: SinkError) -> str:
    """Spell an error so that it gets from an executor to the driver."""
    return json.dumps([isinstance(error, SinkAwayError), error.fact, error.cause, error.remedy])


def unpack(text: str) -> SinkError:
    """Take an error that an executor told."""
    is_away, fact, cause, remedy = json.loads(text)
    kind = SinkAwayError if is_away else SinkError
    return kind(fact, cause=cause, remedy=remedy)


def _to_utc(column: pa.Array) -> Any:
    # Without its zone a time is written twenty times as fast, and none is lost to rounded offsets.
    is_zoned = pa.types.is_timestamp(column.type) and column.type.tz
    return column.view(pa.timestamp("us")) if is_zoned else column
