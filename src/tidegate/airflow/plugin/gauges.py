"""The health of pipelines as gauges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.health import Health, PipelineHealth

_Read = Callable[[PipelineHealth], float | None]

_GAUGES: dict[str, tuple[str, _Read]] = {
    "tidegate_committed_batch": ("The newest batch that is committed.", lambda one: one.batch),
    "tidegate_last_commit_timestamp_seconds": (
        "When the newest batch was committed.",
        lambda one: _to_seconds(one.committed_at),
    ),
    "tidegate_pending_batch": (
        "1 while a batch is planned and not committed.",
        lambda one: float(one.pending_batch is not None),
    ),
    "tidegate_batch_rows": ("What the newest batch read.", lambda one: one.rows),
    "tidegate_rows_per_second": (
        "How many rows the newest batch that read any read each second.",
        lambda one: one.rows_per_second,
    ),
    "tidegate_lag_seconds": (
        "The age of the oldest that waited when it was last looked at.",
        lambda one: one.lag.seconds if one.lag else None,
    ),
    "tidegate_lag_measured_timestamp_seconds": (
        "When that was.",
        lambda one: _to_seconds(one.lag.measured_at) if one.lag else None,
    ),
    "tidegate_retention_headroom_seconds": (
        "How long the oldest that waits is kept at the least.",
        lambda one: one.lag.headroom_seconds if one.lag else None,
    ),
    "tidegate_quarantine_share": (
        "The share of what the newest batches read that was put aside.",
        lambda one: one.quarantine_share,
    ),
    "tidegate_late_rows": (
        "At least so many rows of the newest batches came too late.",
        lambda one: one.late_rows,
    ),
    "tidegate_state_bytes": ("What the query's state takes.", lambda one: one.state_bytes),
    "tidegate_open_incidents": ("Incidents that are not over.", lambda one: len(one.incidents)),
}


class FleetCollector(Collector):
    """Gauges of some pipelines; what nobody could tell has no sample."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Collect all gauges."""
        for name, (text, read) in _GAUGES.items():
            family = GaugeMetricFamily(name, text, labels=("pipeline",))
            for one in self._fleet.pipelines:
                value = read(one)
                if value is not None:
                    family.add_metric((one.pipeline,), value)
            yield family
        yield self._tell_lag()
        yield self._tell_health()

    def _tell_lag(self) -> GaugeMetricFamily:
        family = GaugeMetricFamily(
            "tidegate_lag",
            "How much waited when it was last looked at.",
            labels=("pipeline", "unit"),
        )
        for one in self._fleet.pipelines:
            if one.lag:
                family.add_metric((one.pipeline, one.lag.unit), one.lag.count)
        return family

    def _tell_health(self) -> GaugeMetricFamily:
        family = GaugeMetricFamily(
            "tidegate_health",
            "1 for the health that a pipeline has.",
            labels=("pipeline", "health"),
        )
        for one in self._fleet.pipelines:
            for health in Health:
                family.add_metric((one.pipeline, health), float(one.health is health))
        return family


def _to_seconds(moment: str | None) -> float | None:
    return datetime.fromisoformat(moment).timestamp() if moment else None
