"""No more slices at once than asked for, whoever starts them."""

from contextlib import ExitStack

import pytest

from tidegate.core.backfill.lanes import Lanes, Queue


@pytest.fixture
def lanes(store):
    return Lanes(store, 2)


def test_there_are_as_many_as_asked_for(lanes):
    with ExitStack() as stack:
        let_in = [stack.enter_context(lanes.enter(number, 30)) for number in range(3)]
        assert let_in == [True, True, False]
    with lanes.enter(3, 30) as is_let_in:
        assert is_let_in


def fail_at_once(lanes, number):
    """Do as a slice whose driver cannot even begin."""
    with lanes.enter(number, 30) as is_let_in:
        assert is_let_in
        raise RuntimeError


def test_one_that_fails_at_once_stands_in_nobody_s_way(lanes):
    with pytest.raises(RuntimeError):
        fail_at_once(lanes, 0)
    assert [lanes.look(number).is_open for number in range(4)] == [True, True, True, False]


def test_a_free_lane_lets_in_as_many_as_there_are_and_the_first_ones_first(lanes):
    def list_open():
        return [number for number in range(4) if lanes.look(number).is_open]

    assert list_open() == [0, 1]
    with lanes.enter(0, 30):
        assert lanes.look(3) == Queue(ahead=2, free=1)
        assert list_open() == [0, 1]
        with lanes.enter(1, 30):
            assert list_open() == []
        assert list_open() == [0, 1, 2]
    assert list_open() == [0, 1, 2, 3]


def test_one_that_is_done_by_other_means_is_not_waited_for(lanes):
    (lanes.folder / "slices").mkdir(parents=True)
    (lanes.folder / "slices" / "0.json").write_text("{}")
    assert lanes.look(2) == Queue(ahead=1, free=2)


def test_a_lane_that_cannot_be_read_is_taken(lanes):
    folder = lanes.folder / "lanes" / "0"
    folder.mkdir(parents=True)
    (folder / "1.json").write_text("{")
    with lanes.enter(0, 30) as first, lanes.enter(1, 30) as second:
        assert (first, second) == (True, False)
