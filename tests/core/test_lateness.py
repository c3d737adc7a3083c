"""How late rows come, and the watermark that follows from it."""

from datetime import timedelta

import pytest

from tidegate.core.lateness import SHARES, EventTimes, Lateness, measure_lateness

SECOND = 1000


def batch(newest, oldest, *shares, rows=10):
    """A batch's event times, in seconds."""
    times = [time * SECOND for time in shares or [oldest] * len(SHARES)]
    return EventTimes(rows, newest * SECOND, oldest * SECOND, tuple(times))


def test_no_event_times_say_nothing():
    assert measure_lateness([]) is None
    assert measure_lateness([EventTimes(0, None, None, ())]) is None


def test_lateness_is_behind_the_newest_event_of_earlier_batches():
    found = measure_lateness([batch(100, 90), batch(95, 40), batch(120, 98)])
    assert (found.rows, found.latest) == (30, timedelta(seconds=60))
    assert found.shares[0.5] == timedelta(seconds=2)
    assert found.shares[0.95] == timedelta(seconds=60)
    assert found.span == timedelta(seconds=55)


def test_batches_in_perfect_order_need_no_delay_however_long_they_are():
    day = 24 * 60 * 60
    found = measure_lateness(batch((n + 1) * day - 1, n * day) for n in range(10))
    assert (found.latest, found.span) == (timedelta(), timedelta(seconds=day - 1))
    assert found.suggest() == timedelta(seconds=1)


def test_one_batch_alone_says_nothing_of_lateness():
    found = measure_lateness([batch(100, 0)])
    assert (found.rows, found.shares, found.suggest()) == (10, {}, None)


FIRST = batch(100, 100)


def test_batches_count_by_their_rows():
    usual = batch(100, 0, 99, 90, 80, 50, rows=100_000)
    found = measure_lateness([FIRST, usual, batch(100, 40, rows=1)])
    assert [found.shares[share].total_seconds() for share in SHARES] == [1, 10, 20, 50]
    assert found.latest == timedelta(seconds=100)


def test_a_share_takes_in_the_batches_that_are_later():
    found = measure_lateness([FIRST, batch(100, 99, rows=100), batch(100, 40, rows=100)])
    assert [found.shares[share].total_seconds() for share in SHARES] == [1, 60, 60, 60]


@pytest.mark.parametrize(
    ("late", "suggested"),
    [
        (0, 1),
        (3, 3),
        (49, 50),
        (61, 70),
        (299, 300),
        (3500, 3600),
        (5940, 6000),
        (100_000, 108_000),
    ],
)
def test_a_suggestion_is_round_and_long_enough(late, suggested):
    found = Lateness(1, timedelta(), dict.fromkeys(SHARES, timedelta(seconds=late)))
    assert found.suggest() == timedelta(seconds=suggested)
    assert found.suggest() >= timedelta(seconds=late)
