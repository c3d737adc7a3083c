"""`tidegate quarantine`: what was put aside, and why."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.cli.run import submit
from tidegate.core.errors import ReplayError
from tidegate.core.quarantine import (
    Choice,
    Tally,
    read_quarantine,
    tally_quarantine,
    tell_content,
    tell_place,
)
from tidegate.core.replay import Replays
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import choose_pipelines
from tidegate.core.submission import prepare_replay, require_jars

app = typer.Typer(help="Look at what was put aside.", no_args_is_help=True)

_Name = Annotated[str, typer.Argument(help="The pipeline.")]
_Rule = Annotated[str | None, typer.Option(help="Only what this rule put aside.")]
_Run = Annotated[str | None, typer.Option(help="Only what this run put aside.")]
_Since = Annotated[datetime | None, typer.Option(help="Only what was put aside since, UTC.")]
_Until = Annotated[datetime | None, typer.Option(help="Only what was put aside before, UTC.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_all(
    name: Annotated[
        str | None, typer.Argument(help="The pipeline; all where none is named.")
    ] = None,
    *,
    as_json: _Json = False,
) -> None:
    """Count what was put aside, by pipeline and rule."""
    settings = Settings.from_environment()
    tallies = [
        tally
        for pipeline in choose_pipelines(settings.pipelines, name)
        for tally in tally_quarantine(pipeline, settings)
    ]
    if as_json:
        print(json.dumps([asdict(tally) for tally in tallies], indent=2, default=_spell))
    elif tallies:
        Console().print(_render_tallies(tallies))
    else:
        print("Nothing was put aside.")


@app.command("show")
def show(
    name: _Name,
    rule: _Rule = None,
    run: _Run = None,
    since: _Since = None,
    until: _Until = None,
    limit: Annotated[int, typer.Option(min=1, help="So many at the most.")] = 20,
    *,
    as_json: _Json = False,
) -> None:
    """Show what a pipeline put aside, with place and reason."""
    settings = Settings.from_environment()
    (pipeline,) = choose_pipelines(settings.pipelines, name)
    choice = _choose(rule, run, since, until)
    rows = list(read_quarantine(pipeline, settings, choice, limit))
    if as_json:
        print(json.dumps(rows, indent=2, default=_spell))
    elif rows:
        Console().print(_render_rows(rows))
    else:
        print("Nothing of the kind was put aside.")


@app.command("replay")
def replay(
    name: _Name,
    rule: _Rule = None,
    run: _Run = None,
    since: _Since = None,
    until: _Until = None,
    master: Annotated[
        str, typer.Option(envvar="TIDEGATE_MASTER", help="Spark's master.")
    ] = "local[*]",
) -> None:
    """Take up again what was put aside: what the spec lets through now is written, once."""
    settings = Settings.from_environment()
    (pipeline,) = choose_pipelines(settings.pipelines, name)
    replays = Replays(pipeline, settings)
    begun = replays.begin(_choose(rule, run, since, until))
    if begun is None:
        print("Nothing of the kind was put aside.")
        return
    print(f"{name}: {begun.id} takes {begun.rows:,} rows, {begun.choice.describe()}", flush=True)
    require_jars(settings)
    submit(prepare_replay(pipeline, settings, begun.id), master)
    result = replays.read(begun.id).result
    if result is None:
        raise ReplayError(
            f"The replay {begun.id} ended without a result.",
            remedy="Run the command again without options: it goes on with it.",
        )
    for line in result.describe():
        print(f"{name}: {line}")


def _choose(
    rule: str | None, run: str | None, since: datetime | None, until: datetime | None
) -> Choice:
    return Choice(
        rule,
        run,
        since.replace(tzinfo=UTC) if since else None,
        until.replace(tzinfo=UTC) if until else None,
    )


def _render_tallies(tallies: Iterable[Tally]) -> Table:
    table = Table()
    for heading in ("pipeline", "rule", "sink"):
        table.add_column(heading, no_wrap=True)
    for heading in ("rows", "runs"):
        table.add_column(heading, justify="right")
    for heading in ("first", "last"):
        table.add_column(heading)
    for tally in tallies:
        table.add_row(
            tally.pipeline,
            tally.rule,
            tally.sink or "",
            f"{tally.rows:,}",
            f"{tally.runs:,}",
            f"{tally.first:%Y-%m-%d %H:%M:%S}",
            f"{tally.last:%Y-%m-%d %H:%M:%S}",
        )
    return table


def _render_rows(rows: Iterable[dict[str, Any]]) -> Table:
    table = Table(show_lines=True)
    table.add_column("rule", no_wrap=True)
    for heading in ("place", "reason", "what"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        cells = (tell_place(row), row["reason"], tell_content(row))
        table.add_row(row["rule"], *map(Text, cells))
    return table


def _spell(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)
