"""Each rule: what is yet well, what is told, and in which words."""

from datetime import timedelta

import pytest

from tidegate.core.alerts.alert import find_alerts
from tidegate.core.alerts.failure import Failure
from tidegate.core.alerts.measures import Measures, NewestRun
from tidegate.core.alerts.rules import Rules
from tidegate.core.alerts.waiting import Waiting
from tidegate.core.spec.alerts import Rule

HOUR, DAY = 3600.0, 86400.0
RULES = Rules(
    lag_records=1000,
    lag_time=timedelta(hours=2),
    no_commit_for=timedelta(days=1),
    no_data_for=timedelta(days=3),
)


def run(**parts):
    return Measures(newest=NewestRun("run 1", **parts))


def wait(**parts):
    return Measures(waiting=Waiting(is_any=True, **parts))


@pytest.mark.parametrize(
    ("measures", "told"),
    [
        (
            Measures(failure=Failure("no landing zone", "t")),
            "failed_run: The newest run failed: no",
        ),
        (
            Measures(failure=Failure("x", "t", task="submit")),
            "failed_run: The newest run failed in s",
        ),
        (wait(records=1001), "lag_records: 1,001 records wait, more than 1,000."),
        (wait(seconds=2.5 * HOUR), "lag_time: What is read next waits for 2.5 h, longer than 2h."),
        (
            run(state_rows=111_000, state_rows_before=100_000),
            "state_growth: The query remembers 111",
        ),
        (run(late_rows=1), "late_rows: At least 1 rows came after the watermark"),
        (run(quarantined=51, input_rows=1000), "quarantine_share: 51 of 1,000 rows were put aside"),
        (wait(kept_seconds=23 * HOUR, retention_seconds=7 * DAY), "retention_headroom: What is re"),
        (wait(kept_seconds=2 * HOUR, retention_seconds=12 * HOUR), "retention_headroom: What is r"),
        (
            Measures(silent_seconds=3 * DAY + 1, waiting=Waiting(is_any=None)),
            "no_commit_for: Nothi",
        ),
    ],
)
def test_what_is_beyond_a_rule_is_told(measures, told):
    first = find_alerts(measures, RULES)[0]
    assert f"{first.rule}: {first.fact}".startswith(told)
    assert first.remedy


@pytest.mark.parametrize(
    "measures",
    [
        Measures(),
        wait(records=1000),
        wait(seconds=2 * HOUR),
        run(state_rows=110_000, state_rows_before=100_000),
        run(state_rows=900, state_rows_before=10),
        run(state_rows=100_000, state_rows_before=0),
        run(state_rows=100_000, state_rows_before=None),
        run(late_rows=0),
        run(quarantined=50, input_rows=1000),
        run(quarantined=1, input_rows=None),
        wait(kept_seconds=25 * HOUR, retention_seconds=7 * DAY),
        wait(kept_seconds=4 * HOUR, retention_seconds=12 * HOUR),
        Measures(silent_seconds=3 * DAY),
    ],
)
def test_what_is_within_its_rule_is_not(measures):
    assert find_alerts(measures, RULES) == ()


def test_nothing_committed_matters_where_something_waits_or_where_new_data_is_asked_for():
    quiet, stuck = Measures(silent_seconds=2 * DAY), wait(seconds=None)
    stuck = Measures(waiting=stuck.waiting, silent_seconds=2 * DAY)
    assert find_alerts(quiet, RULES) == ()
    assert [alert.rule for alert in find_alerts(stuck, RULES)] == [Rule.NO_COMMIT_FOR]
    asked = Rules(no_data_for=timedelta(days=1))
    assert [alert.rule for alert in find_alerts(quiet, asked)] == [Rule.NO_DATA_FOR]


def test_a_headroom_that_a_spec_names_counts_whatever_the_source_keeps():
    measures = wait(kept_seconds=11 * HOUR, retention_seconds=12 * HOUR)
    assert find_alerts(measures, RULES) == ()
    asked = Rules(retention_headroom=timedelta(hours=12))
    assert [alert.rule for alert in find_alerts(measures, asked)] == [Rule.RETENTION_HEADROOM]


def test_a_rule_that_is_off_or_cannot_be_judged_tells_nothing():
    broken = run(late_rows=5)
    assert find_alerts(broken, Rules(off=frozenset({Rule.LATE_ROWS}))) == ()
    unknown = Measures(newest=broken.newest, unknown={Rule.LATE_ROWS: "why"})
    assert find_alerts(unknown, Rules()) == ()
