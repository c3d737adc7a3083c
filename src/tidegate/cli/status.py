"""`tidegate status`: where every pipeline stands."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.core.settings import Settings
from tidegate.core.spec.loader import load_specs
from tidegate.core.status import (
    UNHEALTHY,
    PipelineStatus,
    RunState,
    list_statuses,
)

_COLOURS = {RunState.COMMITTED: "green", RunState.IDLE: "cyan", RunState.RUNNING: "yellow"}


def status(*, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show where every pipeline stands."""
    settings = Settings.from_environment()
    rows = list_statuses(load_specs(settings.pipelines), settings)
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    console = Console()
    console.print(render_status(rows))
    for row in rows:
        told = [row.reason if row.state in UNHEALTHY else None, row.warning]
        for line in filter(None, told):
            console.print(f"{row.pipeline}: {line}", markup=False, soft_wrap=True)


def render_status(rows: Iterable[PipelineStatus], title: str | None = None) -> Table:
    """Lay out pipelines as a table."""
    rows = list(rows)
    puts_aside = any(row.quarantined != 0 for row in rows)
    table = Table(title=title, title_justify="left")
    for heading in ("pipeline", "state"):
        table.add_column(heading, no_wrap=True)
    for heading in ("batches", "rows", *(["quarantined"] if puts_aside else [])):
        table.add_column(heading, justify="right")
    table.add_column("committed position")
    for heading in ("table version", "seconds"):
        table.add_column(heading, justify="right")
    for row in rows:
        colour = "red" if row.state in UNHEALTHY else _COLOURS.get(row.state, "white")
        version = "-" if row.table_version is None else str(row.table_version)
        table.add_row(
            row.pipeline,
            f"[{colour}]{row.state}[/]",
            str(row.batches),
            _tell_count(row.rows),
            *([_tell_count(row.quarantined)] if puts_aside else []),
            Text(row.committed),
            version,
            f"{row.seconds:.1f}",
        )
    return table


def _tell_count(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"
