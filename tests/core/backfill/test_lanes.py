"""No more slices at once than asked for, whoever starts them."""

from contextlib import ExitStack

import pytest

from tidegate.core.backfill.lanes import Lanes


@pytest.fixture
def lanes(store):
    return Lanes(store, 2)


def begin(lanes, number):
    """Do as a driver does that takes a slice up."""
    folder = lanes.folder / "lease" / str(number)
    folder.mkdir(parents=True)
    (folder / "1.json").write_text("{}")


def test_there_are_as_many_as_asked_for(lanes):
    with ExitStack() as stack:
        let_in = [stack.enter_context(lanes.enter(number, 30)) for number in range(3)]
        assert let_in == [True, True, False]
    with lanes.enter(3, 30) as is_let_in:
        assert is_let_in


def test_a_slice_that_fails_leaves_its_lane(lanes):
    def fail():
        with lanes.enter(0, 30) as is_let_in:
            assert is_let_in
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert lanes.count_ahead(0) == 0


def test_a_free_lane_lets_in_as_many_as_there_are_and_the_first_ones_first(lanes):
    assert [lanes.count_ahead(number) for number in range(4)] == [0, 0, 1, 2]
    with lanes.enter(0, 30):
        # The one that holds a lane waits for none, though its driver has yet to begin.
        assert [lanes.count_ahead(number) for number in range(1, 4)] == [0, 1, 2]
        begin(lanes, 0)
        assert [lanes.count_ahead(number) for number in range(1, 4)] == [0, 1, 2]
    assert [lanes.count_ahead(number) for number in range(1, 4)] == [0, 0, 1]


def test_one_that_failed_stands_in_nobody_s_way(lanes):
    begin(lanes, 0)
    begin(lanes, 1)
    assert [lanes.count_ahead(number) for number in range(4)] == [0, 0, 0, 0]


def test_a_lane_that_cannot_be_read_is_taken(lanes):
    folder = lanes.folder / "lanes" / "0"
    folder.mkdir(parents=True)
    (folder / "1.json").write_text("{")
    with lanes.enter(0, 30) as first, lanes.enter(1, 30) as second:
        assert (first, second) == (True, False)
