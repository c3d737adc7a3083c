"""What the newest batches of a pipeline say about its watermarks and its state."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.lateness import measure_lateness
from tidegate.core.ledger import Ledger, Metrics, rank_batch
from tidegate.core.settings import Settings
from tidegate.core.spec.base import format_duration
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.watermark import Watermark


@dataclass(frozen=True)
class SourceExplanation:
    """How late the rows of a source come, and what watermark would fit."""

    source: str
    column: str
    delay: str
    """How late rows may come by the spec."""
    rows: int
    """How many rows had an event time."""
    span_seconds: float
    """How far apart the events of a batch were at the most."""
    lateness_seconds: dict[str, float]
    """Within what time behind earlier batches so many of all rows came; none of only one batch."""
    latest_seconds: float
    suggested_delay: str | None
    """None where only one batch is known, of which no row can be late."""


@dataclass(frozen=True)
class Explanation:
    """How late rows come, and how much is remembered of them."""

    pipeline: str
    batches: int
    sources: tuple[SourceExplanation, ...]
    late_rows: int
    """At least how many came after the watermark and were left out."""
    state_rows: int
    state_bytes: int
    state_growth: float | None
    """By what part the state's rows grew from the first of these batches to the last."""


def explain_pipeline(pipeline: Pipeline, settings: Settings, batches: int) -> Explanation:
    """Explain a pipeline by its newest batches."""
    metrics = _read_metrics(pipeline, settings, batches)
    newest = metrics[-1] if metrics else Metrics()
    first_rows = next((m.state_rows for m in metrics if m.state_rows), 0)
    explained = (
        _explain_source(name, source.watermark, metrics)
        for name, source in pipeline.inputs.items()
        if source.watermark
    )
    return Explanation(
        pipeline=pipeline.name,
        batches=len(metrics),
        sources=tuple(filter(None, explained)),
        late_rows=sum(m.late_rows for m in metrics),
        state_rows=newest.state_rows,
        state_bytes=newest.state_bytes,
        state_growth=newest.state_rows / first_rows - 1 if first_rows else None,
    )


def _explain_source(
    name: str, watermark: Watermark, metrics: list[Metrics]
) -> SourceExplanation | None:
    lateness = measure_lateness(m.event_times[name] for m in metrics if name in m.event_times)
    if lateness is None:
        return None
    suggested = lateness.suggest()
    return SourceExplanation(
        source=name,
        column=watermark.column,
        delay=format_duration(watermark.delay),
        rows=lateness.rows,
        span_seconds=lateness.span.total_seconds(),
        lateness_seconds={
            str(share): within.total_seconds() for share, within in lateness.shares.items()
        },
        latest_seconds=lateness.latest.total_seconds(),
        suggested_delay=format_duration(suggested) if suggested else None,
    )


def _read_metrics(pipeline: Pipeline, settings: Settings, batches: int) -> list[Metrics]:
    ledger = Ledger.beside(settings.state_of(pipeline.name))
    last = rank_batch(read_progress(settings.checkpoint_of(pipeline.name)).committed_batch)
    records = (ledger.read_batch(number) for number in range(max(0, last - batches + 1), last + 1))
    return [record.metrics for record in records if record and record.metrics]
