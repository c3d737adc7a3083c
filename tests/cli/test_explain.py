"""`tidegate explain`, from what the ledger has."""

import json

import pytest

from tidegate.core.lateness import EventTimes
from tidegate.core.ledger import BatchRecord, Ledger, Metrics

NOON_MS = 1_769_860_800_000
MINUTE = 60_000


@pytest.fixture
def run_batches(deployment, add_spec, checkpoint_of):
    """A pipeline with a watermark, and batches that were recorded."""
    watermark = "{column: timestamp, delay: 10m}"
    add_spec("orders", source=f"{{type: rate, rows_per_batch: 5, watermark: {watermark}}}")
    ledger = Ledger.beside(deployment.state_of("orders"))
    checkpoint = checkpoint_of("orders")

    def run(*metrics):
        for number, each in enumerate(metrics):
            checkpoint.batch(number, number)
            ledger.record_batch(
                BatchRecord(number, "run", 5, 1.0, "2026-01-31", [], {}, metrics=each)
            )

    return run


def at(newest, oldest, *shares):
    times = tuple(NOON_MS + minute * MINUTE for minute in shares or [oldest] * 4)
    return EventTimes(100, NOON_MS + newest * MINUTE, NOON_MS + oldest * MINUTE, times)


def test_lateness_state_and_a_suggestion_are_told(invoke, run_batches):
    run_batches(
        Metrics(state_rows=100, event_times={"0": at(60, 0)}),
        Metrics(
            state_rows=150,
            state_bytes=2_000_000,
            late_rows=3,
            event_times={"0": at(90, 0, 70, 55, 50, 48)},
        ),
    )
    lines = invoke("explain", "orders").stdout.splitlines()
    shares = "50 % within 0 s, 95 % within 5 min, 99 % within 10 min, 99.9 % within 12 min"
    apart = "those of one batch are at most 1.5 h apart, and never late for each other"
    assert lines == [
        "orders: 2 batches looked at",
        f"  200 rows with an event time; {apart}",
        f"  behind the newest event of earlier batches came {shares}, all within 1 h",
        "  the spec waits 10m; suggested: watermark: {column: timestamp, delay: 15m}",
        "  at least 3 rows came later than the watermark and were left out",
        "  150 rows are remembered, 2.0 MB, +50% since the first",
    ]
    found = json.loads(invoke("explain", "orders", "--json").stdout)
    assert (found["sources"][0]["suggested_delay"], found["late_rows"]) == ("15m", 3)


def test_nothing_is_suggested_from_one_batch(invoke, run_batches):
    run_batches(Metrics(event_times={"0": at(60, 0)}))
    told = invoke("explain", "orders").stdout
    assert "how late rows come shows from the second batch on" in told
    assert "suggested" not in told


def test_a_pipeline_without_event_times_is_told(invoke, add_spec):
    add_spec("orders")
    told = invoke("explain", "orders").stdout
    assert "0 batches looked at" in told
    assert "no event times were observed; give the source a watermark" in told


def test_only_the_newest_batches_are_looked_at(invoke, run_batches):
    run_batches(Metrics(late_rows=5), Metrics(late_rows=1))
    found = json.loads(invoke("explain", "orders", "--batches", "1", "--json").stdout)
    assert (found["batches"], found["late_rows"]) == (1, 1)
