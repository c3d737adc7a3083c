"""`tidegate checkpoint`: what a checkpoint says, and what can be done to it."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.cli.doctor import doctor
from tidegate.cli.surgery import (
    backup,
    backups,
    diff,
    fork,
    move,
    restore,
    rewind,
    skip,
    undo,
)
from tidegate.core.checkpoint.log import require_checkpoint
from tidegate.core.checkpoint.position import describe_position
from tidegate.core.checkpoint.progress import Progress, read_progress
from tidegate.core.storage import open_path

app = typer.Typer(help="Look at a checkpoint, and change it, without Spark.", no_args_is_help=True)
app.command("doctor")(doctor)
for command in (diff, rewind, skip, fork, move, backup, backups, restore, undo):
    app.command(command.__name__)(command)


@app.callback()
def _group() -> None:
    """Look at a checkpoint, and change it, without Spark."""


@app.command()
def show(
    path: Annotated[str, typer.Argument(help="The checkpoint: a local path, or any fsspec URL.")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show how far a query got: what is committed, what is only planned."""
    checkpoint = open_path(path)
    require_checkpoint(checkpoint)
    progress = read_progress(checkpoint)
    if as_json:
        print(json.dumps(_describe(progress), indent=2))
    else:
        _print_tables(path, progress)


def _describe(progress: Progress) -> dict[str, Any]:
    optional = ("problem", "obstacle")
    return {k: v for k, v in asdict(progress).items() if v is not None or k not in optional}


def _print_tables(path: str, progress: Progress) -> None:
    console = Console()
    facts = Table(show_header=False, title=Text(path), title_justify="left")
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in (
        ("state", progress.state),
        ("query id", progress.query_id),
        ("committed batch", progress.committed_batch),
        ("planned batch", progress.planned_batch),
        ("watermark", _format_time(progress.watermark_ms)),
        ("problem", progress.problem),
        ("obstacle", progress.obstacle),
    ):
        if value is not None or name not in {"problem", "obstacle"}:
            facts.add_row(name, Text("-" if value is None else str(value)))
    console.print(facts)
    if not progress.sources:
        return
    sources = Table("source", "kind", "committed", "planned")
    for source in progress.sources:
        positions = (describe_position(source.committed), describe_position(source.planned))
        sources.add_row(*map(Text, (source.source, source.kind, *positions)))
    console.print(sources)


def _format_time(milliseconds: int | None) -> str | None:
    if not milliseconds:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms, which is no date"
