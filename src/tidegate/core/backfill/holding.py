"""How many rows of a range a table has already, counted without a JVM."""

from __future__ import annotations

from urllib.parse import unquote

from tidegate.core.backfill.range import DeltaRange, FilesRange, KafkaRange, Range, count
from tidegate.core.checkpoint.filelog import strip_scheme
from tidegate.core.deltalog import DeltaLog
from tidegate.core.deltatable import DeltaRows
from tidegate.core.settings import Settings
from tidegate.core.spec.files import PROVENANCE
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.sinks.delta import DeltaSink
from tidegate.core.spec.source import DeltaSource

_FILE = PROVENANCE[0]


def count_held(pipeline: Pipeline, settings: Settings, sink: DeltaSink, part: Range) -> int:
    """Count the rows of a sink's table that came from a range."""
    rows = DeltaRows.open(settings.locate(sink.table))
    if rows is None:
        return 0
    match (part, pipeline.source):
        case (KafkaRange(), _):
            (counted,) = rows.select("count(*) AS rows", part.to_sql()).to_pylist()
            return int(counted["rows"])
        case (FilesRange(paths), _):
            wanted = set(paths)
            return sum(n for file, n in _count_by_file(rows) if strip_scheme(file) in wanted)
        case (DeltaRange(first, last), DeltaSource(table=source)):
            changes = map(DeltaLog(settings.locate(source)).read_change, range(first, last + 1))
            names = {_take_name(unquote(path)) for change in changes for path in change.added}
            return sum(n for file, n in _count_by_file(rows) if _take_name(file) in names)
    raise AssertionError((part, pipeline.source))


def tell_held(table: str, rows: int | None = None) -> str:
    """Say that a table has what was to be added."""
    told = "rows" if rows is None else count(rows, "row")
    return f"the table {table} has {told} of it already; take mode replace"


def _count_by_file(rows: DeltaRows) -> list[tuple[str, int]]:
    counted = rows.select(f"{_FILE}, count(*) AS rows", f"{_FILE} IS NOT NULL", f"GROUP BY {_FILE}")
    return [(unquote(row[_FILE]), row["rows"]) for row in counted.to_pylist()]


def _take_name(path: str) -> str:
    return path.rpartition("/")[2]
