"""`tidegate explain`: how late a pipeline's rows come, what it remembers, and what would fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated

import typer
from rich.filesize import decimal

from tidegate.core.explanation import Explanation, SourceExplanation, explain_pipeline
from tidegate.core.lateness import SHARES
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import choose_pipelines
from tidegate.core.spec.pipeline import ONLY_SOURCE

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def explain(
    name: Annotated[str, typer.Argument(help="The pipeline.")],
    batches: Annotated[int, typer.Option(min=1, help="Look at so many of the newest.")] = 100,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain how late rows come and how large the state is; suggest a watermark."""
    settings = Settings.from_environment()
    (pipeline,) = choose_pipelines(settings.pipelines, name)
    explanation = explain_pipeline(pipeline, settings, batches)
    if as_json:
        print(json.dumps(asdict(explanation), indent=2))
        return
    for line in _tell(explanation):
        print(line)


def _tell(found: Explanation) -> Iterator[str]:
    yield f"{found.pipeline}: {found.batches:,} batches looked at"
    if not found.sources:
        yield "  no event times were observed; give the source a watermark"
    for source in found.sources:
        yield from _tell_source(source)
    if found.late_rows:
        yield (
            f"  at least {found.late_rows:,} rows came later than the watermark and were left out"
        )
    if found.state_rows:
        grown = found.state_growth
        growth = "" if grown is None else f", {grown:+.0%} since the first"
        yield f"  {found.state_rows:,} rows are remembered, {decimal(found.state_bytes)}{growth}"


def _tell_source(found: SourceExplanation) -> Iterator[str]:
    named = "" if found.source == ONLY_SOURCE else f"{found.source}: "
    yield (
        f"  {named}{found.rows:,} rows with an event time; those of one batch are at most "
        f"{_spell(found.span_seconds)} apart, and never late for each other"
    )
    if found.suggested_delay is None:
        yield f"  {named}how late rows come shows from the second batch on"
        return
    within = ", ".join(
        f"{share * 100:.4g} % within {_spell(found.lateness_seconds[str(share)])}"
        for share in SHARES
    )
    yield (
        f"  {named}behind the newest event of earlier batches came {within}, "
        f"all within {_spell(found.latest_seconds)}"
    )
    watermark = f"{{column: {found.column}, delay: {found.suggested_delay}}}"
    yield f"  {named}the spec waits {found.delay}; suggested: watermark: {watermark}"


def _spell(seconds: float) -> str:
    size, unit = next((size, unit) for size, unit in _UNITS if seconds >= size or size == 1)
    return f"{seconds / size:.3g} {unit}"
