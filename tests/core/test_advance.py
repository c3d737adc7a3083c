"""How much of a target is done, by the commit log."""

import pytest

from tidegate.core.advance import Advance, describe_advance, measure_advance
from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.target import (
    AllTargets,
    BatchTarget,
    DeltaTarget,
    DrainTarget,
    FilesTarget,
    KafkaTarget,
)


@pytest.fixture
def measure(checkpoint):
    """Measure how far a run is that began before the last so many batches were committed."""

    def find(target, begin, *batches):
        begin()
        start = read_progress(checkpoint.path)
        for batch in batches:
            batch()
        return measure_advance(target, start, read_progress(checkpoint.path), checkpoint.path)

    return find


def test_files_are_counted(measure, checkpoint):
    paths = tuple(f"/landing/{number}.json" for number in range(1, 5))
    (found,) = measure(
        FilesTarget(paths, since=0),
        lambda: checkpoint.log_files(0, "/landing/0.json").batch(0),
        lambda: checkpoint.log_files(1, "/landing/1.json", "/landing/2.json").batch(1),
        lambda: checkpoint.log_files(2, "/landing/3.json").offset(2),
    )
    assert found == Advance(2, 4, "files")


def test_before_the_first_commit_no_file_is_done(measure, checkpoint):
    (found,) = measure(
        FilesTarget(("/landing/0.json",)),
        lambda: None,
        lambda: checkpoint.log_files(0, "/landing/0.json").offset(0),
    )
    assert found == Advance(0, 1, "files")


def test_records_are_counted(measure, checkpoint):
    (found,) = measure(
        KafkaTarget({"t": {"0": 100, "1": 50}}),
        lambda: checkpoint.batch(0, {"t": {"0": 20}}),
        lambda: checkpoint.batch(1, {"t": {"0": 60, "1": 10}}),
    )
    assert found == Advance(50, 130, "records")


def test_records_of_a_first_run_count_from_where_it_began(measure, checkpoint):
    (found,) = measure(
        KafkaTarget({"t": {"0": 100}}),
        lambda: checkpoint.write("sources/0/0", '\0v1\n{"t":{"0":40}}'),
        lambda: checkpoint.batch(0, {"t": {"0": 55}}),
    )
    assert found == Advance(15, 60, "records")


def test_versions_are_counted_but_for_those_of_a_snapshot(measure, checkpoint):
    delta = checkpoint.delta
    (found,) = measure(
        DeltaTarget(9),
        lambda: checkpoint.batch(0, delta(4)),
        lambda: checkpoint.batch(1, delta(7)),
    )
    assert found == Advance(3, 6, "versions")


@pytest.mark.parametrize(
    "target",
    [BatchTarget(3), DrainTarget(), DeltaTarget(9), KafkaTarget({"t": {"0": 10}}), None],
)
def test_what_nobody_can_count_is_left_out(measure, checkpoint, target):
    assert measure(target, lambda: None) == ()


def test_of_several_sources_each_is_counted(measure, checkpoint):
    target = AllTargets((KafkaTarget({"t": {"0": 10}}, "a"), KafkaTarget({"u": {"0": 4}}, "b")))
    found = measure(
        target,
        lambda: checkpoint.named_offset(0, {"a": {"t": {"0": 0}}, "b": {"u": {"0": 0}}}).commit(0),
        lambda: checkpoint.named_offset(1, {"a": {"t": {"0": 5}}, "b": {"u": {"0": 4}}}).commit(1),
    )
    assert found == (Advance(5, 10, "records"), Advance(4, 4, "records"))


@pytest.mark.parametrize(
    ("advances", "told"),
    [
        ((), ""),
        ((Advance(0, 10, "files"),), "0 of 10 files committed"),
        (
            (Advance(2_000, 8_000, "records"),),
            "2,000 of 8,000 records committed, about 3.0 min left",
        ),
        (
            (Advance(5, 10, "files"), Advance(1, 10, "records")),
            "5 of 10 files committed, 1 of 10 records committed, about 9.0 min left",
        ),
        (
            (Advance(5, 10, "files"), Advance(0, 10, "records")),
            "5 of 10 files committed, 0 of 10 records committed",
        ),
    ],
)
def test_the_slowest_source_says_how_long_it_takes(advances, told):
    assert describe_advance(advances, 60) == told
