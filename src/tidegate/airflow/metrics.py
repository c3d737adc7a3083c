"""Metrics that tasks send by Airflow's own StatsD or OpenTelemetry, where that is turned on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk.observability import stats

from tidegate.core.fleet.lag import tell_planned_lag
from tidegate.core.ledger import Decision, Plan


def send_plan(pipeline: str, plan: Plan) -> None:
    """Send what plan found: the decision, and how far the pipeline is behind."""
    for decision in Decision:
        _send(f"plan_{decision}", pipeline, float(plan.decision is decision))
    lag = tell_planned_lag(plan)
    if lag:
        _send("lag", pipeline, lag.count)
        _send("lag_seconds", pipeline, lag.seconds)
        _send("retention_headroom_seconds", pipeline, lag.headroom_seconds)


def send_commit(pipeline: str, told: Mapping[str, Any]) -> None:
    """Send what a run committed, as downstream is told it."""
    _send("committed_batch", pipeline, told["committed_batch"])
    _send("run_batches", pipeline, len(told["batches"]))
    _send("run_rows", pipeline, told["rows"])
    _send("run_quarantined", pipeline, told["quarantined"])


def _send(name: str, pipeline: str, value: float | None) -> None:
    if value is None:
        return  # nobody knows
    # Plain StatsD knows no tags, so the pipeline is part of one name, as Airflow does it.
    stats.gauge(f"tidegate.{name}.{pipeline}", value)
    stats.gauge(f"tidegate.{name}", value, tags={"pipeline": pipeline})
