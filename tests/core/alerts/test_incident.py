"""Each incident is told once when it begins and once when it is over, whatever happens between."""

from datetime import timedelta
from itertools import pairwise
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from upath import UPath

from tests.core.alerts.conftest import NOW
from tidegate.core.alerts.alert import Alert
from tidegate.core.alerts.incident import Book, Incidents
from tidegate.core.alerts.telling import Teller
from tidegate.core.doctor.fault import Severity
from tidegate.core.errors import LedgerError
from tidegate.core.lease import hold_lease
from tidegate.core.spec.alerts import PythonChannel, Rule

FAILED, LATE = Rule.FAILED_RUN, Rule.LATE_ROWS
OPS = PythonChannel(type="python", notifier="m:ops")
BOSS = PythonChannel(type="python", notifier="m:boss")


def alert(rule=FAILED, fact="It failed."):
    return Alert(rule, Severity.ERROR, fact, "Mend it.")


class Post:
    """Takes messages, or refuses them."""

    def __init__(self):
        self.is_down = False
        self.delivered = []

    def __call__(self, channel, message):
        if self.is_down:
            raise OSError("the mail server is away")
        state = "over" if message.incident.over_at else "open"
        self.delivered.append((channel.notifier, str(message.incident.alert.rule), state))


@pytest.fixture
def post():
    return Post()


@pytest.fixture
def teller(store, post):
    return Teller("p", Incidents.beside(store), (OPS,), post)


def settle(teller, *alerts, unknown=(), minutes=0):
    return teller.settle(alerts, unknown, NOW + timedelta(minutes=minutes))


def test_an_incident_is_told_once_and_once_when_it_is_over(teller, post):
    settle(teller, alert())
    settle(teller, alert(fact="It failed for another reason."), minutes=1)
    assert post.delivered == [("m:ops", "failed_run", "open")]
    assert teller.incidents.list_open()[0].alert.fact == "It failed for another reason."
    settle(teller, minutes=2)
    settle(teller, minutes=3)
    assert post.delivered[1:] == [("m:ops", "failed_run", "over")]
    assert teller.incidents.list_open() == ()
    (closed,) = teller.incidents.list_closed()
    assert (closed.opened_at, closed.over_at) == (
        "2026-06-01T12:00:00.000+00:00",
        "2026-06-01T12:02:00.000+00:00",
    )


def test_a_pipeline_without_incidents_leaves_no_file(teller, store):
    settle(teller)
    assert not (store / "alerts").exists()


def test_what_cannot_be_judged_is_neither_opened_nor_over(teller, post):
    settle(teller, unknown=[FAILED])
    settle(teller, alert(), minutes=1)
    settle(teller, unknown=[FAILED], minutes=2)
    assert post.delivered == [("m:ops", "failed_run", "open")]


def test_what_was_opened_after_a_measurement_is_not_closed_by_it(teller, post):
    settle(teller, alert(), minutes=1)
    settle(teller, minutes=0)
    assert len(teller.incidents.list_open()) == 1


def test_a_delivery_that_fails_is_made_up_for(teller, post):
    post.is_down = True
    (failure,) = settle(teller, alert()).failures
    assert "python m:ops: [tidegate] p: run failed: the mail server is away" in failure
    post.is_down = False
    settle(teller, alert(), minutes=1)
    settle(teller, alert(), minutes=2)
    assert post.delivered == [("m:ops", "failed_run", "open")]


def test_an_incident_that_nobody_could_be_told_of_is_told_as_over(teller, post):
    post.is_down = True
    settle(teller, alert())
    settle(teller, minutes=1)
    post.is_down = False
    settle(teller, minutes=2)
    assert post.delivered == [("m:ops", "failed_run", "over")]


def test_a_channel_that_fails_keeps_no_other_from_being_told(store):
    told = []

    def deliver(channel, message):
        if channel is OPS:
            raise OSError("away")
        told.append(channel.notifier)

    teller = Teller("p", Incidents.beside(store), (OPS, BOSS), deliver)
    assert len(settle(teller, alert(), alert(LATE)).failures) == 2
    assert len(settle(teller, alert(), alert(LATE), minutes=1).failures) == 2
    assert told == ["m:boss", "m:boss"]
    assert [each.untold for each in teller.incidents.list_open()] == [(OPS.label,), (OPS.label,)]


def test_a_channel_that_a_spec_no_longer_names_is_forgotten(store, post):
    post.is_down = True
    settle(Teller("p", Incidents.beside(store), (OPS,), post), alert())
    post.is_down = False
    settle(Teller("p", Incidents.beside(store), (BOSS,), post), alert(), minutes=1)
    assert post.delivered == []
    assert Incidents.beside(store).list_open()[0].untold == ()


def test_of_two_that_look_at_once_one_tells(teller, post):
    with hold_lease(teller.incidents.lease, "another", seconds=30):
        settle(teller, alert())
    assert post.delivered == []
    settle(teller, alert())
    assert len(post.delivered) == 1


def test_what_is_over_is_kept_for_a_while(teller):
    for minutes in range(0, 120, 2):
        settle(teller, alert(), minutes=minutes)
        settle(teller, minutes=minutes + 1)
    closed = teller.incidents.list_closed()
    assert len(closed) == 50
    assert closed[0].opened_at > closed[-1].opened_at


def test_a_broken_file_is_told(teller, store):
    (store / "alerts").mkdir(parents=True)
    (store / "alerts" / "incidents.json").write_text("{")
    with pytest.raises(LedgerError, match="Delete the file"):
        settle(teller, alert())


RULES = st.sampled_from([FAILED, LATE])
LOOKS = st.lists(st.tuples(st.sets(RULES), st.sets(RULES), st.booleans()), max_size=12)


@given(LOOKS)
def test_under_any_sequence_every_change_is_told_exactly_once(looks):
    """Openings and endings alternate, one message each, and none is missing at the end."""
    post = Post()
    teller = Teller("p", Incidents(UPath(f"memory:///{uuid4()}/alerts")), (OPS,), post)
    expected, is_open = [], set()
    for minute, (broken, unknown, is_down) in enumerate(looks):
        post.is_down = is_down
        known = broken - unknown
        expected += [(rule, "open") for rule in known - is_open]
        over = is_open - known - unknown
        expected += [(rule, "over") for rule in over]
        is_open = (is_open | known) - over
        settle(teller, *map(alert, sorted(known)), unknown=unknown, minutes=minute)
    post.is_down = False
    settle(teller, unknown=[FAILED, LATE], minutes=len(looks))
    told = [(rule, state) for _, rule, state in post.delivered]
    for rule in (FAILED, LATE):
        mine = [state for each, state in told if each == rule]
        assert all(a != b or a == "over" for a, b in pairwise(mine))
        wanted = [state for each, state in expected if each == rule]
        assert mine.count("over") == wanted.count("over")
        # An opening is left out only where it could not be told before it was over.
        assert mine.count("open") <= wanted.count("open")
        assert not wanted or mine[-1] == wanted[-1]
    assert not teller.incidents.read().untold
    if not any(is_down for _, _, is_down in looks):
        assert sorted(told) == sorted(expected)


def test_a_book_has_at_most_one_open_incident_of_a_rule():
    book = Book().update([alert(), alert(fact="again")], (), (), NOW)
    assert len(book.open) == 1
