"""Batches that nobody wrote down, from what the checkpoint has of them."""

import pytest

from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.ledger import Decision, Ledger, Plan
from tidegate.core.recovery import recover_batches
from tidegate.core.spec.pipeline import Pipeline

PLAN = Plan(run_id="run", decision=Decision.RUN, reason="", planned_at="2026-01-31T08:00:00+00:00")


@pytest.mark.parametrize(
    ("rules", "failed", "quarantined"),
    [
        ([], {}, 0),
        ([{"not_null": ["id"], "on_fail": "warn"}], None, 0),
        ([{"not_null": ["id"]}], None, None),
    ],
)
def test_what_rows_failed_in_a_recovered_batch_is_known_only_where_there_are_no_rules(
    settings, checkpoint_of, rules, failed, quarantined
):
    parts = {
        "name": "p",
        "source": {"type": "rate", "rows_per_batch": 1},
        "sinks": [{"type": "delta", "table": "out"}],
        "expect": rules,
    }
    checkpoint = checkpoint_of("p").batch(0)
    recover_batches(Pipeline.model_validate(parts), settings, PLAN, read_progress(checkpoint.path))
    record = Ledger.beside(settings.state_of("p")).read_batch(0)
    assert (record.failed, record.quarantined) == (failed, quarantined)
