"""A pipeline with a history, written as plan, driver and Spark write it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tidegate.core.ledger import (
    Attempt,
    Baseline,
    BatchRecord,
    Decision,
    Ledger,
    Metrics,
    Outcome,
    Plan,
)
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.target import BatchTarget

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def make_pipeline(**parts):
    source = {"type": "files", "path": "landing", "format": "text", "max_files_per_trigger": 1}
    sinks = [{"type": "delta", "table": "out"}]
    spec = {"name": "p", "schedule": "@hourly", "source": source, "sinks": sinks}
    return Pipeline.model_validate(spec | parts)


def ago(**parts):
    return (NOW - timedelta(**parts)).isoformat()


class History:
    """Writes what runs leave behind."""

    def __init__(self, settings, checkpoint):
        self.settings = settings
        self.checkpoint = checkpoint
        self.ledger = Ledger.beside(settings.state_of("p"))
        self.batches = 0
        self.landing = Path(settings.data) / "landing"
        self.landing.mkdir(parents=True, exist_ok=True)

    def plan(self, run_id, at, decision=Decision.RUN, reason="files to read"):
        committed = self.batches - 1 if self.batches else None
        target = BatchTarget(self.batches) if decision is Decision.RUN else None
        baseline = Baseline(self.checkpoint.query_id, committed)
        self.ledger.open_run(Plan(run_id, decision, reason, at, target, baseline))
        return self

    def attempt(self, run_id, outcome, at, error=None):
        ended = None if outcome is Outcome.RUNNING else at
        self.ledger.record_attempt(run_id, Attempt(outcome, at, ended, error))
        return self

    def commit(self, run_id, at, *, rows=100, aside=0, **metrics):
        batch = self.batches
        self.checkpoint.log_files(batch, f"{self.landing}/{batch}.txt").batch(batch)
        record = BatchRecord(batch, run_id, rows, 1.0, at, [], {}, aside, {}, Metrics(**metrics))
        self.ledger.record_batch(record)
        self.batches += 1
        return self

    def run(self, run_id, at, **batch):
        """Plan a run that commits one batch and succeeds."""
        return (
            self.plan(run_id, at).commit(run_id, at, **batch).attempt(run_id, Outcome.SUCCEEDED, at)
        )


@pytest.fixture
def history(settings, checkpoint_of):
    return History(settings, checkpoint_of("p"))
