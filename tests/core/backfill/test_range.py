"""Ranges, cut into slices that make the whole again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.core.backfill.range import RANGE, DeltaRange, FilesRange, KafkaRange

SPANS = st.tuples(st.integers(0, 50), st.integers(0, 50)).map(sorted).map(tuple)
OFFSETS = st.dictionaries(
    st.sampled_from(["orders", "returns"]),
    st.dictionaries(st.sampled_from(["0", "1", "10"]), SPANS, min_size=1),
    min_size=1,
)
RANGES = st.one_of(
    OFFSETS.map(KafkaRange),
    st.tuples(st.integers(0, 50), st.integers(0, 50)).map(lambda pair: DeltaRange(*sorted(pair))),
    st.lists(st.integers(), unique=True).map(lambda ids: FilesRange(tuple(map(str, ids)))),
)


def members(whole):
    match whole:
        case KafkaRange(offsets):
            return [
                (topic, number, offset)
                for topic, numbers in offsets.items()
                for number, (start, end) in numbers.items()
                for offset in range(start, end)
            ]
        case DeltaRange(first, last):
            return list(range(first, last + 1))
        case FilesRange(paths):
            return list(paths)


@given(RANGES, st.integers(1, 20))
def test_slices_make_the_whole_and_no_two_share_anything(whole, slices):
    parts = whole.split(slices)
    held = [member for part in parts for member in members(part)]
    assert sorted(held) == sorted(members(whole))
    sizes = [part.size for part in parts]
    assert len(parts) == min(slices, whole.size)
    assert all(sizes)
    assert not sizes or max(sizes) - min(sizes) <= 1


@given(RANGES)
def test_a_range_survives_json(whole):
    assert RANGE.validate_json(RANGE.dump_json(whole)) == whole


@pytest.mark.parametrize(
    ("whole", "told"),
    [
        (KafkaRange({"orders": {"0": (5, 1505), "1": (0, 10)}}), "1,510 offsets of 2 partitions"),
        (DeltaRange(3, 1200), "versions 3 to 1,200"),
        (FilesRange(("a", "b")), "2 files"),
    ],
)
def test_a_range_is_told_in_a_few_words(whole, told):
    assert whole.describe() == told
