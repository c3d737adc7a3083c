"""`tidegate backfill`: a range of a source once more, by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tidegate.cli.run import submit
from tidegate.core.backfill.book import Backfill, Backfills, SliceResult
from tidegate.core.backfill.range import Range
from tidegate.core.backfill.request import Mode, Request, parse_request
from tidegate.core.backfill.survey import Survey
from tidegate.core.ledger import Ledger, Summary
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import choose_pipelines, load_specs
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.submission import prepare_backfill, require_jars


def backfill(
    name: Annotated[str, typer.Argument(help="The pipeline.")],
    mode: Annotated[
        Mode | None,
        typer.Option(
            help="replace swaps the range as a whole; merge brings rows in by their keys; append adds "
            "them, where the table has none of the range."
        ),
    ] = None,
    offsets: Annotated[
        str | None,
        typer.Option(
            help="""Kafka: from and up to, not including: '{"orders": {"0": [5, 90]}}'."""
        ),
    ] = None,
    since: Annotated[str | None, typer.Option(help="From this time on.")] = None,
    until: Annotated[str | None, typer.Option(help="Up to, not including, this time.")] = None,
    first_version: Annotated[int | None, typer.Option(help="Delta: the first version.")] = None,
    last_version: Annotated[int | None, typer.Option(help="Delta: the last version.")] = None,
    glob: Annotated[str | None, typer.Option(help="Files: names, as a pattern.")] = None,
    path: Annotated[list[str] | None, typer.Option(help="Files: just this one; repeat it.")] = None,
    slices: Annotated[int, typer.Option(help="Cut the range into so many parts.")] = 1,
    resume: Annotated[
        str | None, typer.Option(metavar="ID", help="Go on with a backfill that was not finished.")
    ] = None,
    master: Annotated[
        str, typer.Option(envvar="TIDEGATE_MASTER", help="Spark's master.")
    ] = "local[*]",
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")
    ] = False,
) -> None:
    """Read a range of a pipeline's source once more; live runs go on meanwhile."""
    settings = Settings.from_environment()
    if resume:
        (pipeline,) = choose_pipelines(settings.pipelines, name)
        begun = Backfills(pipeline, settings).read(resume)
        require_jars(settings)
    else:
        asked = {
            "pipeline": name,
            "mode": mode,
            "offsets": offsets,
            "since": since,
            "until": until,
            "first_version": first_version,
            "last_version": last_version,
            "glob": glob,
            "paths": path or None,
            "slices": slices,
        }
        request, pipeline = parse_request(asked, load_specs(settings.pipelines))
        whole = Survey(request, pipeline, settings).find_range()
        for line in _describe(request, pipeline, settings, whole):
            print(line, flush=True)
        if dry_run:
            print("Nothing was done.")
            return
        require_jars(settings)
        begun = Backfills(pipeline, settings).begin(request, whole)
    print(f"{name}: {begun.id}; go on with it by --resume, should it be cut off", flush=True)
    submit(prepare_backfill(pipeline, settings, begun.id), master)
    done = Backfills(pipeline, settings).read_done(begun.id)
    Console().print(_render(begun, done.values()))


def _describe(
    request: Request, pipeline: Pipeline, settings: Settings, whole: Range
) -> Iterator[str]:
    yield f"{pipeline.name}: {request.mode} {whole.describe()}, in {len(whole.split(request.slices))} slices"
    if request.mode is Mode.REPLACE:
        tables = ", ".join(sink.table for sink in pipeline.delta_sinks)
        yield f"{pipeline.name}: all rows of the range in {tables} are swapped"
    rate = _find_rate(settings, pipeline.name)
    if rate and whole.kind == "kafka":
        yield f"{pipeline.name}: about {whole.size / rate:,.0f} s, by the last run's {rate:,.0f} rows a second"


def _find_rate(settings: Settings, pipeline: str) -> float | None:
    """Find how many rows a second the last run read."""
    latest = Ledger.beside(settings.state_of(pipeline)).find_latest()
    batches = latest.batches if latest else ()
    seconds = sum(batch.seconds or 0 for batch in batches)
    rows = Summary.of(batches).input_rows
    return rows / seconds if rows and seconds else None


def _render(begun: Backfill, done: Iterable[SliceResult]) -> Table:
    table = Table("slice", "range")
    for heading in ("read", "written", "put aside", "failed rules", "seconds"):
        table.add_column(heading, justify="right")
    for result in done:
        written = ", ".join(f"{name} {_tell(rows)}" for name, rows in result.written.items())
        failed = ", ".join(f"{rule} {count:,}" for rule, count in result.failed.items() if count)
        table.add_row(
            f"{result.number + 1} of {len(begun.slices)}",
            begun.slices[result.number].describe(),
            _tell(result.rows_read),
            written,
            f"{result.quarantined:,}",
            failed,
            f"{result.seconds:g}",
        )
    return table


def _tell(rows: int | None) -> str:
    return "?" if rows is None else f"{rows:,}"
