"""Telling sources apart by the shape of their offsets."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.core.checkpoint.position import (
    SourceKind,
    classify_position,
    describe_position,
    is_behind,
)

DELTA = {"sourceVersion": 1, "reservoirId": "a-b", "reservoirVersion": 3, "index": -1}


@pytest.mark.parametrize(
    ("position", "kind", "words"),
    [
        ({"logOffset": 3}, SourceKind.FILES, "file log 3"),
        ({"logOffset": -1}, SourceKind.FILES, "file log -1"),
        (DELTA, SourceKind.DELTA, "up to version 2"),
        (DELTA | {"isStartingVersion": False}, SourceKind.DELTA, "up to version 2"),
        (DELTA | {"index": 7}, SourceKind.DELTA, "version 3 to file 7"),
        (DELTA | {"index": -20}, SourceKind.DELTA, "up to version 2"),
        (
            DELTA | {"index": 0, "isStartingVersion": True},
            SourceKind.DELTA,
            "in the snapshot of version 3",
        ),
        ({"orders": {"0": 1200, "1": 34}}, SourceKind.KAFKA, "orders 1,234 (2 partitions)"),
        (
            {"a": {"0": 1}, "b": {"0": 2}},
            SourceKind.KAFKA,
            "a 1 (1 partitions), b 2 (1 partitions)",
        ),
        (42, SourceKind.RATE, "row 42"),
        ({"offset": 42, "timestamp": 1}, SourceKind.RATE, "row 42"),
        (None, SourceKind.UNKNOWN, "-"),
        (True, SourceKind.UNKNOWN, "True"),
        ("x", SourceKind.UNKNOWN, "x"),
        ({}, SourceKind.UNKNOWN, "{}"),
        ([1], SourceKind.UNKNOWN, "[1]"),
        ({"logOffset": True}, SourceKind.UNKNOWN, "{'logOffset': True}"),
        ({"logOffset": "3"}, SourceKind.UNKNOWN, "{'logOffset': '3'}"),
        ({"orders": {"0": "5"}}, SourceKind.UNKNOWN, "{'orders': {'0': '5'}}"),
        ({"orders": {"zero": 5}}, SourceKind.UNKNOWN, "{'orders': {'zero': 5}}"),
    ],
)
def test_a_position_is_told_by_its_shape(position, kind, words):
    assert classify_position(position) is kind
    assert describe_position(position) == words


@pytest.mark.parametrize("name", ["logOffset", "offset", "reservoirId"])
def test_a_topic_may_be_named_like_a_field_of_another_source(name):
    assert classify_position({name: {"0": 5}}) is SourceKind.KAFKA


@pytest.mark.parametrize("version", [None, "3", 3.5, True, [], {}])
def test_a_delta_position_whose_version_is_no_number_is_unknown(version):
    assert classify_position(DELTA | {"reservoirVersion": version}) is SourceKind.UNKNOWN


SNAPSHOT = DELTA | {"index": 9, "isStartingVersion": True}


@pytest.mark.parametrize(
    ("position", "later"),
    [
        ({"logOffset": 0}, {"logOffset": 1}),
        (DELTA, DELTA | {"reservoirVersion": 4}),
        (DELTA, DELTA | {"index": 0}),
        (DELTA | {"index": 1}, DELTA | {"index": 2}),
        (SNAPSHOT, SNAPSHOT | {"index": 10}),
        (SNAPSHOT, DELTA),
        ({"a": {"0": 5}}, {"a": {"0": 6}}),
        ({"a": {"0": 5, "1": 9}}, {"a": {"0": 5, "1": 10}}),
        ({"a": {"0": 5}}, {"a": {"0": 6}, "b": {"0": 1}}),
        (4, 5),
        ({"offset": 4, "timestamp": 9}, {"offset": 5, "timestamp": 1}),
    ],
)
def test_a_position_is_behind_a_later_one_and_never_behind_itself(position, later):
    assert is_behind(position, later)
    assert not is_behind(later, position)
    assert not is_behind(position, position)


def test_a_position_is_behind_if_any_of_its_partitions_is():
    assert is_behind({"a": {"0": 9, "1": 1}}, {"a": {"0": 5, "1": 2}})


@pytest.mark.parametrize("other", [None, "x", 4, DELTA, {"a": {"0": 6}}])
def test_positions_of_different_sources_are_not_compared(other):
    assert not is_behind({"logOffset": 0}, other)
    assert not is_behind(other, {"logOffset": 9})


@settings(max_examples=60)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(min_size=1, max_size=3),
        lambda inner: st.dictionaries(
            st.sampled_from(["logOffset", "offset", "timestamp", "reservoirId", "index", "0"])
            | st.just("reservoirVersion"),
            inner,
            max_size=4,
        ),
        max_leaves=5,
    )
)
def test_every_position_can_be_told_in_words(position):
    assert classify_position(position) in SourceKind
    assert describe_position(position)
