"""What a backfill would do and did, in words and as a table, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import StringIO

from rich.console import Console
from rich.table import Table

from tidegate.core.backfill.holding import count_held
from tidegate.core.backfill.neighbours import find_stopped
from tidegate.core.backfill.progress import tell_seconds
from tidegate.core.backfill.range import count
from tidegate.core.backfill.request import Mode, Request
from tidegate.core.backfill.survey import Found
from tidegate.core.backfill.verification import SinkAudit, Verification
from tidegate.core.checkpoint.filelog import read_file_log
from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.ledger import BatchRecord, Ledger, rank_batch
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import ONLY_SOURCE, Pipeline

_LOOKED_AT = 20
"""By how many of the newest batches the time is estimated."""
_WIDTH = 140


def describe(
    request: Request,
    pipeline: Pipeline,
    settings: Settings,
    found: Found,
    others: Iterable[Pipeline] = (),
) -> Iterator[str]:
    """Say what a backfill would do."""
    whole, name = found.range, pipeline.name
    rows = "" if found.rows is None else f" with {count(found.rows, 'row')}"
    slices = count(len(whole.split(request.slices)), "slice")
    at_once = f", {request.parallelism} at once" if request.parallelism > 1 else ""
    yield f"{name}: {request.mode} {whole.describe()}{rows}, in {slices}{at_once}"
    if request.mode is Mode.REPLACE:
        yield from _tell_replaced(pipeline, settings, found, others)
    seconds = _estimate_seconds(pipeline, settings, found)
    if seconds is not None:
        yield (
            f"{name}: about {tell_seconds(seconds / request.parallelism)} of work, by the newest "
            "batches of live runs"
        )


def _tell_replaced(
    pipeline: Pipeline, settings: Settings, found: Found, others: Iterable[Pipeline]
) -> Iterator[str]:
    for sink in pipeline.delta_sinks:
        held = count_held(pipeline, settings, sink, found.range)
        yield f"{pipeline.name}: {sink.table} has {count(held, 'row')} of the range, to be swapped"
    for told in find_stopped(pipeline, others, settings):
        yield f"{pipeline.name}: {told}"


def _estimate_seconds(pipeline: Pipeline, settings: Settings, found: Found) -> float | None:
    batches = _read_newest(pipeline, settings)
    seconds = sum(batch.seconds or 0 for batch in batches)
    if found.range.kind == "files":
        size: int | None = found.range.size
        known = _count_files(pipeline, settings, batches)
    else:
        size = found.range.size if found.range.kind == "kafka" else found.rows
        known = sum(batch.input_rows or 0 for batch in batches)
    return None if size is None or not known or not seconds else seconds / known * size


def _read_newest(pipeline: Pipeline, settings: Settings) -> list[BatchRecord]:
    progress = read_progress(settings.checkpoint_of(pipeline.name))
    newest = rank_batch(progress.committed_batch if progress.is_readable else None)
    ledger = Ledger.beside(settings.state_of(pipeline.name))
    records = (ledger.read_batch(n) for n in range(max(0, newest + 1 - _LOOKED_AT), newest + 1))
    return [record for record in records if record and record.seconds is not None]


def _count_files(pipeline: Pipeline, settings: Settings, batches: list[BatchRecord]) -> int:
    """Count the files of some batches: each is one entry of the file source's log."""
    ids = {batch.batch_id for batch in batches}
    logged = read_file_log(settings.checkpoint_of(pipeline.name), ONLY_SOURCE) if ids else []
    return sum(file.log_offset in ids for file in logged)


def render(verification: Verification) -> str:
    """Show what became of all rows, as a table and in words."""
    table = Table("sink")
    headings = ("read", "put aside", "dropped", "left out by steps", "not for it", "offered")
    for heading in (*headings, "written", "in the table"):
        table.add_column(heading, justify="right")
    for audit in verification.sinks:
        table.add_row(*_list_cells(audit))
    text = StringIO()
    console = Console(file=text, width=_WIDTH, no_color=True)
    console.print(table)
    for line in _list_lines(verification):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    return text.getvalue()


def _list_cells(audit: SinkAudit) -> Iterator[str]:
    yield audit.sink
    counts = (audit.read, audit.put_aside, audit.dropped, audit.by_steps, audit.not_for_sink)
    for number in (*counts, audit.offered):
        yield f"{number:,}"
    yield "?" if audit.written is None else f"{audit.written:,}"
    yield "" if audit.held is None else f"{audit.held:,}"


def _list_lines(verification: Verification) -> Iterator[str]:
    yield (
        f"{verification.backfill_id}: {verification.done} of {verification.slices} slices, "
        f"{tell_seconds(verification.seconds)} of work"
    )
    failed = {rule: rows for rule, rows in verification.failed.items() if rows}
    if failed:
        yield "failed rules: " + ", ".join(f"{rule} {rows:,}" for rule, rows in failed.items())
    if not verification.problems:
        yield "it adds up"
    for problem in verification.problems:
        yield f"does not add up: {problem}"
