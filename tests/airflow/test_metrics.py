"""Metrics as a StatsD server receives them."""

import socket
from contextlib import suppress

import pytest

from tidegate.core.ledger import Decision, Plan
from tidegate.core.waiting import Unit, Waiting

PLAN = Plan(
    run_id="run",
    decision=Decision.RUN,
    reason="",
    planned_at="2026-11-18T12:00:00+00:00",
    waiting={"0": Waiting(Unit.RECORDS, 90, 120.0, 3600.0)},
)


@pytest.fixture
def received(monkeypatch):
    """Turn StatsD on as a task's process does, and read what was sent since."""
    from airflow.sdk._shared.observability.metrics.stats import _get_backend
    from airflow.sdk.observability import stats
    from airflow.sdk.observability.metrics import stats_utils

    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 0))
    server.settimeout(0.2)
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "True")
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_HOST", "127.0.0.1")
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_PORT", str(server.getsockname()[1]))
    stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)

    def read() -> set[str]:
        found = set()
        with suppress(TimeoutError):
            while True:
                found.add(server.recv(4096).decode().removeprefix("airflow."))
        return found

    yield read
    _get_backend().statsd.close()
    monkeypatch.setenv("AIRFLOW__METRICS__STATSD_ON", "False")
    stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=False)
    server.close()


def test_plan_sends_how_far_a_pipeline_is_behind(received):
    from tidegate.airflow.metrics import send_plan

    send_plan("orders", PLAN)
    assert {
        "tidegate.plan_run.orders:1.0|g",
        "tidegate.plan_idle.orders:0.0|g",
        "tidegate.lag.orders:90|g",
        "tidegate.lag_seconds.orders:120.0|g",
        "tidegate.retention_headroom_seconds.orders:3600.0|g",
    } <= received()


def test_confirm_sends_what_was_committed_and_nothing_that_nobody_knows(received):
    from tidegate.airflow.metrics import send_commit

    told = {"committed_batch": 7, "batches": [6, 7], "rows": 200, "quarantined": None}
    send_commit("orders", told)
    sent = received()
    assert {
        "tidegate.committed_batch.orders:7|g",
        "tidegate.run_batches.orders:2|g",
        "tidegate.run_rows.orders:200|g",
    } <= sent
    assert not any("quarantined" in line for line in sent)
