"""Which rules hold where a spec says nothing, or something."""

from datetime import timedelta

import pytest

from tests.core.alerts.conftest import make_pipeline
from tidegate.core.alerts.rules import Rules, find_interval
from tidegate.core.spec.alerts import Alerts


@pytest.mark.parametrize(
    ("schedule", "longest"),
    [
        ("*/15 * * * *", timedelta(minutes=15)),
        ("@daily", timedelta(days=1)),
        ("0 9 * * 1-5", timedelta(days=3)),
        ("@continuous", timedelta()),
        ("@once", None),
        (None, None),
    ],
)
def test_an_interval_is_the_longest_wait_of_a_schedule(schedule, longest):
    assert find_interval(make_pipeline(schedule=schedule), {}) == longest


def test_a_later_layer_has_the_interval_of_the_one_that_starts_it():
    bronze = make_pipeline(name="bronze", schedule="@hourly")
    silver = make_pipeline(name="silver", schedule=None, after=["bronze"])
    gold = make_pipeline(name="gold", schedule=None, after=["silver", "by_hand"])
    known = {each.name: each for each in (bronze, silver, gold)}
    assert find_interval(gold, known) == timedelta(hours=1)


@pytest.mark.parametrize(
    ("interval", "lag", "silence"),
    [
        (timedelta(minutes=1), timedelta(minutes=15), timedelta(days=1)),
        (timedelta(hours=6), timedelta(hours=12), timedelta(days=1)),
        (timedelta(days=7), timedelta(days=14), timedelta(days=14)),
        (timedelta(), timedelta(minutes=15), timedelta(days=1)),
        (None, None, None),
    ],
)
def test_lag_and_silence_go_by_the_schedule(interval, lag, silence):
    rules = Rules.of(Alerts(), interval)
    assert (rules.lag_time, rules.no_commit_for) == (lag, silence)


def test_what_a_spec_says_counts():
    said = Alerts.model_validate({"lag_time": "5m", "no_commit_for": "2h", "off": ["late_rows"]})
    rules = Rules.of(said, timedelta(days=1))
    assert (rules.lag_time, rules.no_commit_for) == (timedelta(minutes=5), timedelta(hours=2))
    assert rules.off == {"late_rows"}
