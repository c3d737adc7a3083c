"""What a pipeline has written, read back without a JVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.dataset as ds
from psycopg import sql
from psycopg.conninfo import make_conninfo
from rich.table import Table
from rich.text import Text

from tidegate.core.connection import read_connection
from tidegate.core.database import DatabaseConnection
from tidegate.core.deltatable import DeltaRows
from tidegate.core.quarantine import Choice, read_quarantine
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.sinks.delta import DeltaSink
from tidegate.core.spec.sinks.files import FilesSink
from tidegate.core.spec.sinks.jdbc import JdbcSink
from tidegate.core.spec.sinks.sink import Sink
from tidegate.core.storage import list_names

_ASIDE = ("rule", "sink", "reason", "file", "row")
_MOST_ROWS = 1000


@dataclass(frozen=True)
class Result:
    """The rows of one table or folder, as texts and in order."""

    place: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def render(self) -> Table:
        """Lay it out for a terminal."""
        table = Table()
        for column in self.columns:
            table.add_column(column, overflow="fold")
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table


def read_results(pipeline: Pipeline, settings: Settings) -> list[Result]:
    """Read all that a pipeline has written: every sink, then what was put aside."""
    results = [result for sink in pipeline.sinks for result in _read_sink(sink, settings)]
    aside = list(read_quarantine(pipeline, settings, Choice(), _MOST_ROWS))
    if aside:
        rows = ([row[column] for column in _ASIDE] for row in aside)
        results.append(_build(pipeline.quarantine_sink.table, _ASIDE, rows))
    return results


def find_database(sink: JdbcSink) -> DatabaseConnection:
    """Find how to reach the database that a sink writes to."""
    return DatabaseConnection.from_options(sink.connection, read_connection(sink.connection))


def _read_sink(sink: Sink, settings: Settings) -> Iterator[Result]:
    match sink:
        case DeltaSink(route_by=None):
            yield from _read_delta(sink.table, settings)
        case DeltaSink():
            for name in sorted(list_names(settings.locate(sink.table))):
                yield from _read_delta(f"{sink.table}/{name}", settings)
        case FilesSink():
            folder = str(settings.locate(sink.path))
            yield take_table(sink.path, ds.dataset(folder, partitioning="hive").to_table())
        case JdbcSink():
            yield _read_database(sink)


def _read_delta(table: str, settings: Settings) -> Iterator[Result]:
    rows = DeltaRows.open(settings.locate(table))
    if rows:
        yield take_table(table, rows.select())


def _read_database(sink: JdbcSink) -> Result:
    select = sql.SQL("SELECT * FROM {}").format(sql.Identifier(*sink.table.split(".")))
    with psycopg.connect(make_conninfo(**find_database(sink).to_libpq())) as connection:
        cursor = connection.execute(select)
        return _build(sink.table, [c.name for c in cursor.description or ()], cursor)


def take_table(place: str, table: pa.Table) -> Result:
    """Take the rows of an Arrow table."""
    return _build(place, table.column_names, (row.values() for row in table.to_pylist()))


def _build(place: str, columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> Result:
    # No store keeps an order, so the first columns make one.
    ordered = sorted(map(tuple, rows), key=lambda row: [(cell is not None, cell) for cell in row])
    return Result(place, tuple(columns), tuple(tuple(map(_spell, row)) for row in ordered))


def _spell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case datetime():
            moment = value.astimezone(UTC) if value.tzinfo else value
            return f"{moment:%Y-%m-%d %H:%M:%S}"
        case _:
            return str(value)
