"""Batches into the ledger and the log, from what Spark reports of them."""

import json
from types import SimpleNamespace

import pytest
from upath import UPath

from tidegate.core.ledger import Ledger, SinkRecord
from tidegate.spark.batch import BatchResult
from tidegate.spark.recorder import BatchRecorder


@pytest.fixture
def ledger(tmp_path):
    return Ledger(UPath(tmp_path))


@pytest.fixture
def report(ledger):
    """Report a batch as Spark does, with the state that it left."""

    def hear(batch_id, rows, size, late=0):
        operator = {
            "numRowsTotal": rows,
            "memoryUsedBytes": size,
            "numRowsDroppedByWatermark": late,
        }
        progress = {
            "batchId": batch_id,
            "numInputRows": 5,
            "durationMs": {"triggerExecution": 1500},
            "sources": [],
            "stateOperators": [operator],
        }
        recorder = BatchRecorder(ledger, "p", "run 1")
        recorder.note_result(batch_id, BatchResult({"main": SinkRecord(rows=5, version=1)}))
        told = SimpleNamespace(json=json.dumps(progress))
        recorder.onQueryProgress(SimpleNamespace(progress=told))
        assert recorder.error is None
        return ledger.read_batch(batch_id).metrics

    return hear


def test_the_growth_of_the_state_is_that_since_the_batch_before(report):
    growths = [
        (metrics.state_rows_growth, metrics.state_bytes_growth)
        for metrics in (report(0, 10, 1000), report(1, 25, 1800), report(2, 5, 700))
    ]
    assert growths == [(10, 1000), (15, 800), (-20, -1100)]


def test_a_growth_since_a_batch_that_nobody_recorded_is_not_known(report):
    metrics = report(7, 10, 1000)
    assert (metrics.state_rows, metrics.state_rows_growth) == (10, None)


def test_rows_that_came_too_late_are_told_as_the_least_that_they_were(report, capsys):
    report(0, 1, 1, late=3)
    assert "at least 3 too late and left out" in capsys.readouterr().out
