"""`tidegate lag`: how far every Kafka pipeline is behind."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from itertools import groupby
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.filesize import decimal
from rich.table import Table

from tidegate.core.duration import spell_seconds
from tidegate.core.errors import TidegateError
from tidegate.core.lag import PartitionLag, measure_lag
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import choose_pipelines
from tidegate.core.spec.pipeline import Pipeline

_SHORT_SECONDS = 3600


def lag(
    name: Annotated[str | None, typer.Argument(help="One pipeline; all by default.")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show how far each partition is behind, and how long its next record will be kept."""
    settings = Settings.from_environment()
    rows, problems = [], []
    for pipeline in _choose(settings, name):
        try:
            rows += measure_lag(pipeline, settings)
        except TidegateError as error:
            problems.append(f"{pipeline.name}: {error}")
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    elif rows or problems:
        Console().print(render_lag(rows))
    else:
        print("No pipeline of these reads Kafka.")
    for problem in problems:
        print(f"tidegate: {problem}", file=sys.stderr)
    raise typer.Exit(1 if problems else 0)


def _choose(settings: Settings, name: str | None) -> list[Pipeline]:
    pipelines = choose_pipelines(settings.pipelines, name)
    return [one for one in pipelines if name or one.kafka_inputs]


def render_lag(rows: Iterable[PartitionLag]) -> Group:
    """Lay out partitions as a table for each pipeline."""
    by_pipeline = groupby(rows, key=lambda row: row.pipeline)
    return Group(*(_render_pipeline(name, partitions) for name, partitions in by_pipeline))


def _render_pipeline(name: str, rows: Iterable[PartitionLag]) -> Table:
    table = Table(title=name, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("partition", no_wrap=True)
    for heading in ("committed", "end", "lag", "bytes", "behind", "kept", "kept for"):
        table.add_column(heading, justify="right")
    for row in rows:
        is_at_risk = (row.headroom_records or 0) < 0 or (
            row.headroom_seconds is not None and row.headroom_seconds < _SHORT_SECONDS
        )
        table.add_row(
            f"{row.topic}-{row.partition}",
            _count(row.committed),
            _count(row.end),
            _count(row.lag_records),
            decimal(row.lag_bytes) if row.lag_bytes else _count(row.lag_bytes),
            _spell(row.lag_seconds),
            _count(row.headroom_records),
            _spell(row.headroom_seconds),
            style="red" if is_at_risk else None,
        )
    return table


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _spell(seconds: float | None) -> str:
    return "-" if seconds is None else spell_seconds(seconds)
