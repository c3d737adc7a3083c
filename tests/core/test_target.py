"""Judging targets by what is committed, and by nothing else."""

import json
from dataclasses import asdict

import pytest
from pydantic import ValidationError

from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.errors import CorruptLogError, TargetMismatchError
from tidegate.core.target import (
    BatchTarget,
    DeltaTarget,
    FilesTarget,
    KafkaTarget,
    find_shortfall,
    parse_target,
)

HOSTILE_NAMES = ["a b.json", "c%20d.json", "50%.json", "h#h.json", "é 日本.json", "q?q.json", "p+p"]


def judge(target, checkpoint):
    return find_shortfall(target, read_progress(checkpoint.path), checkpoint.path)


@pytest.mark.parametrize(
    "target",
    [
        FilesTarget(("/a b", "/é"), source="orders"),
        FilesTarget((), since=7),
        DeltaTarget(3, source="1"),
        DeltaTarget(3, last_index=0),
        KafkaTarget({"orders": {"0": 5, "1": 0}}, source="2"),
        BatchTarget(7),
    ],
)
def test_a_target_survives_json(target):
    assert parse_target(json.loads(json.dumps(asdict(target)))) == target


@pytest.mark.parametrize(
    "value", [{}, {"kind": "x"}, {"kind": "delta"}, {"kind": "batch", "batch_id": "x"}, None]
)
def test_what_is_no_target_is_refused(value):
    with pytest.raises(ValidationError):
        parse_target(value)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (FilesTarget(tuple(map(str, range(1200)))), "1,200 files"),
        (DeltaTarget(3), "table version 3"),
        (KafkaTarget({"a": {"0": 1, "1": 1}, "b": {"0": 1}}), "the end offsets of 3 partitions"),
        (BatchTarget(3), "batch 3"),
    ],
)
def test_a_target_is_told_in_words(target, words):
    assert target.describe() == words


@pytest.mark.parametrize(
    "target",
    [FilesTarget(()), DeltaTarget(-1), KafkaTarget({}), BatchTarget(0)],
    ids=lambda target: target.kind,
)
def test_nothing_is_reached_before_the_first_commit(checkpoint, target):
    assert judge(target, checkpoint) == "nothing is committed yet"
    assert judge(target, checkpoint.offset(0)) == "nothing is committed yet"


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (DeltaTarget(0), "Source '0' is of kind files, and the target is for delta."),
        (KafkaTarget({"a": {"0": 1}}), "Source '0' is of kind files, and the target is for kafka."),
        (FilesTarget((), source="x"), "The checkpoint has no source 'x'; it has '0', '1'."),
    ],
)
def test_a_target_for_another_source_is_refused(checkpoint, target, reason):
    with pytest.raises(TargetMismatchError, match=reason):
        judge(target, checkpoint.batch(0, {"logOffset": 0}, None))


def test_a_source_without_a_position_has_reached_nothing(checkpoint):
    checkpoint.batch(0, {"logOffset": 0}, None)
    shortfall = judge(FilesTarget((), source="1"), checkpoint)
    assert shortfall == "source '1' has no committed position yet"


@pytest.mark.parametrize(("wanted", "is_reached"), [(0, True), (1, True), (2, False)])
def test_a_batch_target_needs_that_commit(checkpoint, wanted, is_reached):
    shortfall = judge(BatchTarget(wanted), checkpoint.batch(0).batch(1).offset(2))
    assert (shortfall is None) is is_reached
    assert is_reached or shortfall == "batch 1 is committed, batch 2 is not"


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_file_is_found_however_it_is_named(local_checkpoint, name):
    local_checkpoint.log_files(0, f"/landing/{name}").batch(0)
    assert judge(FilesTarget((f"/landing/{name}",)), local_checkpoint) is None


@pytest.mark.parametrize(
    ("logged", "wanted"), [("/l/a%20b", "/l/a b"), ("/l/a+b", "/l/a b"), ("/l/A", "/l/a")]
)
def test_names_that_only_look_alike_are_other_files(local_checkpoint, logged, wanted):
    local_checkpoint.log_files(0, logged).batch(0)
    assert judge(FilesTarget((wanted,)), local_checkpoint) is not None


def test_a_target_may_spell_its_files_as_urls(checkpoint):
    checkpoint.log_files(0, "/landing/a.json").batch(0)
    assert judge(FilesTarget(("file:///landing/a.json",)), checkpoint) is None


def test_a_file_that_is_only_logged_or_planned_is_not_committed(checkpoint):
    checkpoint.batches(2).log_files(2, "/landing/2.json").offset(2)
    checkpoint.log_files(3, "/landing/3.json")
    target = FilesTarget(tuple(f"/landing/{n}.json" for n in range(4)))
    assert judge(target, checkpoint).startswith("2 of 4 files are not committed (2.json, 3.json")


def test_files_are_found_through_compaction_and_purge(new_checkpoint):
    checkpoint = new_checkpoint().batches(130).purge(29)
    target = FilesTarget(tuple(f"/landing/{n}.json" for n in range(130)))
    assert judge(target, checkpoint) is None


@pytest.mark.parametrize(
    ("gone", "missing"),
    [("sources", "sources/0/0"), ("sources/0/0", "sources/0/0"), ("sources/0/2", "sources/0/2")],
    ids=["all of it", "its start", "its end"],
)
def test_a_log_that_lost_what_is_committed_is_corrupt(checkpoint, gone, missing):
    checkpoint.batches(3).delete(gone)
    told = f"{missing} is corrupt: it is missing, and later ones need it"
    with pytest.raises(CorruptLogError, match=told):
        judge(FilesTarget(("/landing/1.json",)), checkpoint)


@pytest.mark.parametrize(("since", "is_reached"), [(-1, True), (0, True), (1, False), (2, False)])
def test_only_what_was_logged_since_the_plan_counts(checkpoint, since, is_reached):
    checkpoint.batches(3)  # /landing/1.json at offset 1
    target = FilesTarget(("/landing/1.json",), since=since)
    assert (judge(target, checkpoint) is None) is is_reached


def test_a_file_that_is_read_again_is_reached_by_its_later_entry(checkpoint):
    target = FilesTarget(("/landing/0.json",), since=1)
    checkpoint.batches(2).log_files(2, "/landing/0.json").offset(2)
    assert judge(target, checkpoint).startswith("1 of 1 files are not committed (0.json")
    assert judge(target, checkpoint.commit(2)) is None


def test_files_of_a_named_source_are_found_in_its_own_log(checkpoint):
    checkpoint.log_files(0, "/landing/a", source="orders")
    checkpoint.named_offset(0, {"orders": {"logOffset": 0}}).commit(0)
    assert judge(FilesTarget(("/landing/a",), source="orders"), checkpoint) is None


@pytest.mark.parametrize(
    ("version", "index", "starting", "shortfall"),
    [
        (4, -1, False, None),
        (9, 2, False, None),
        (3, -1, False, "the table is read up to version 2, not 3"),
        (3, 5, False, "the table is read up to version 2, not 3"),
        (3, -20, False, "the table is read up to version 2, not 3"),
        (2, -1, False, "the table is read up to version 1, not 3"),
        (3, 5, True, "the snapshot of version 3 is not read to its end"),
        (9, -1, True, "the snapshot of version 9 is not read to its end"),
    ],
)
def test_a_table_version_is_read_once_the_position_is_past_it(
    local_checkpoint, version, index, starting, shortfall
):
    local_checkpoint.batch(0, local_checkpoint.delta(version, index=index, starting=starting))
    assert judge(DeltaTarget(3), local_checkpoint) == shortfall


@pytest.mark.parametrize(
    ("version", "index", "starting", "shortfall"),
    [
        (3, 2, False, None),
        (3, 3, False, None),
        (4, -1, False, None),
        (3, 1, False, "the table is read up to version 2, not 3"),
        (3, -1, False, "the table is read up to version 2, not 3"),
        (2, 9, False, "the table is read up to version 1, not 3"),
        (3, 2, True, "the snapshot of version 3 is not read to its end"),
    ],
)
def test_a_version_of_recorded_changes_is_read_once_the_position_is_at_its_last_file(
    local_checkpoint, version, index, starting, shortfall
):
    local_checkpoint.batch(0, local_checkpoint.delta(version, index=index, starting=starting))
    assert judge(DeltaTarget(3, last_index=2), local_checkpoint) == shortfall


@pytest.mark.parametrize("version", [None, "9", [], {}])
def test_a_delta_position_without_a_number_does_not_reach_a_version(local_checkpoint, version):
    local_checkpoint.batch(0, local_checkpoint.delta(0) | {"reservoirVersion": version})
    with pytest.raises(TargetMismatchError, match="of kind unknown, and the target is for delta"):
        judge(DeltaTarget(3), local_checkpoint)


@pytest.mark.parametrize("index", [None, "9", [], {}])
def test_a_delta_position_without_a_file_does_not_reach_the_last_one(local_checkpoint, index):
    local_checkpoint.batch(0, local_checkpoint.delta(3) | {"index": index})
    assert judge(DeltaTarget(3, last_index=2), local_checkpoint) is not None


@pytest.mark.parametrize(
    ("position", "behind"),
    [
        ({"orders": {"0": 200, "1": 30}}, None),
        ({"orders": {"0": 201, "1": 31, "2": 5}, "more": {"0": 1}}, None),
        ({"orders": {"0": 150, "1": 30}}, "1 partitions are behind (orders-0 at 150 of 200)"),
        ({"orders": {"0": 200}}, "1 partitions are behind (orders-1 at 0 of 30)"),
        (
            {"other": {"0": 500, "1": 500}},
            "2 partitions are behind (orders-0 at 0 of 200, orders-1 at 0 of 30)",
        ),
    ],
)
def test_every_partition_must_be_there_and_at_its_end(local_checkpoint, position, behind):
    local_checkpoint.batch(0, position)
    assert judge(KafkaTarget({"orders": {"0": 200, "1": 30}}), local_checkpoint) == behind


def test_an_empty_partition_must_be_there_too(checkpoint):
    checkpoint.batch(0, {"orders": {"0": 5}})
    assert judge(KafkaTarget({"orders": {"0": 5, "1": 0}}), checkpoint) is not None


@pytest.mark.parametrize(
    ("target", "committed", "planned"),
    [
        (DeltaTarget(3), {"reservoirId": "a", "reservoirVersion": 3}, 4),
        (KafkaTarget({"orders": {"0": 9}}), {"orders": {"0": 8}}, 9),
    ],
    ids=["delta", "kafka"],
)
def test_what_is_planned_does_not_count(checkpoint, target, committed, planned):
    end = (
        {"orders": {"0": planned}}
        if "orders" in committed
        else committed | {"reservoirVersion": planned}
    )
    checkpoint.batch(0, committed).offset(1, end)
    assert judge(target, checkpoint) is not None
    assert judge(target, checkpoint.commit(1)) is None
