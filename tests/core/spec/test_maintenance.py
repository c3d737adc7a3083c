"""The policy of maintenance: good defaults, and no retention that would do harm."""

from datetime import timedelta

import pytest
from pydantic import ValidationError

from tidegate.core.spec.maintenance import Maintenance


def test_the_defaults_are_careful():
    policy = Maintenance()
    assert (policy.vacuum_retention, policy.log_retention) == (timedelta(days=7), None)
    assert (policy.ledger_retention, policy.keep_batches) == (timedelta(days=90), 1000)


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("vacuum_retention", "59m", "must be at least 1h: a shorter one deletes files that are"),
        ("log_retention", "6d", "must be at least 7d: Delta needs the log"),
        ("ledger_retention", "12h", "must be at least 1d"),
        ("backfill_retention", "1h", "must be at least 1d"),
        ("min_small_files", 0, "greater than or equal to 1|greater than 0"),
        ("keep_batches", True, "must be a whole number"),
        ("retention", "7d", "Extra inputs"),
    ],
)
def test_what_would_do_harm_is_refused(field, value, told):
    with pytest.raises(ValidationError, match=told):
        Maintenance.model_validate({field: value})
