"""Reading both logs: versions, litter, damage, and Spark writing meanwhile."""

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from upath import UPath

from tidegate.core.checkpoint import log
from tidegate.core.checkpoint.log import read_logs, read_query_id, require_checkpoint
from tidegate.core.checkpoint.progress import State, read_progress
from tidegate.core.errors import (
    CorruptLogError,
    NotACheckpointError,
    TidegateError,
    UnsupportedLogError,
)

FILES = ("metadata", "offsets/0", "offsets/1", "commits/1")
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3)
JSON = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.text(max_size=3), SCALARS)


def test_a_folder_that_does_not_exist_holds_nothing(store):
    logs = read_logs(store / "nowhere")
    assert (logs.query_id, logs.committed, logs.planned) == (None, None, None)


def test_both_logs_are_read_from_their_ends(checkpoint):
    checkpoint.batch(0, {"logOffset": 0}).batch(1, {"logOffset": 1}).offset(2, {"logOffset": 2})
    logs = read_logs(checkpoint.path)
    assert logs.query_id == checkpoint.query_id
    assert logs.committed.batch_id == 1
    assert logs.committed_offsets.sources == {"0": {"logOffset": 1}}
    assert logs.planned.batch_id == 2
    assert logs.planned.sources == {"0": {"logOffset": 2}}


def test_batches_are_numbers_not_words(checkpoint):
    for batch in (8, 9, 10):
        checkpoint.batch(batch)
    assert read_logs(checkpoint.path).committed.batch_id == 10


def test_a_source_without_an_offset_has_no_position(checkpoint):
    checkpoint.offset(0, None, 7)
    assert read_logs(checkpoint.path).planned.sources == {"0": None, "1": 7}


def test_named_sources_are_split_at_the_first_colon(checkpoint):
    checkpoint.named_offset(0, {"orders": {"logOffset": 3}, "clicks": {"clicks": {"0": 5}}})
    expected = {"orders": {"logOffset": 3}, "clicks": {"clicks": {"0": 5}}}
    assert read_logs(checkpoint.path).planned.sources == expected


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_of_the_commit_log_is_read(checkpoint, version):
    checkpoint.offset(0).commit(0, version=version, watermark_ms=42)
    assert read_logs(checkpoint.path).committed.next_watermark_ms == 42


@pytest.mark.parametrize("text", ["v1", "v1\n"])
def test_a_commit_of_only_its_version_is_valid(checkpoint, text):
    checkpoint.offset(0).write("commits/0", text)
    logs = read_logs(checkpoint.path)
    assert (logs.committed.batch_id, logs.committed.next_watermark_ms) == (0, None)


def test_an_offset_file_may_have_no_metadata(checkpoint):
    checkpoint.metadata().write("offsets/0", 'v1\n\n{"logOffset":0}')
    planned = read_logs(checkpoint.path).planned
    assert (planned.sources, planned.watermark_ms) == ({"0": {"logOffset": 0}}, None)


@pytest.mark.parametrize("name", ["2.tmp", "_2", "2a", "+2", "-2", "²", "٢", "2.compact"])
@pytest.mark.parametrize("folder", ["offsets", "commits"])
def test_only_all_digit_names_are_batches(local_checkpoint, folder, name):
    local_checkpoint.batch(0).put(f"{folder}/{name}", b"v1")
    logs = read_logs(local_checkpoint.path)
    assert (logs.committed.batch_id, logs.planned.batch_id) == (0, 0)


@pytest.mark.parametrize("folder", ["offsets", "commits"])
def test_the_litter_of_a_killed_driver_is_no_batch(checkpoint, folder):
    checkpoint.batch(0).litter(folder, 1)
    logs = read_logs(checkpoint.path)
    assert (logs.committed.batch_id, logs.planned.batch_id) == (0, 0)


@pytest.mark.parametrize(
    ("name", "version", "newest"),
    [("offsets/0", "3", 2), ("commits/0", "4", 3), ("commits/0", "12345678", 3)],
)
def test_a_newer_version_is_named_not_guessed_at(checkpoint, name, version, newest):
    body = checkpoint.batch(0).read(name).removeprefix(b"v1")
    checkpoint.write(name, f"v{version}".encode() + body)
    with pytest.raises(UnsupportedLogError, match="Upgrade tidegate") as caught:
        read_logs(checkpoint.path)
    assert f"{name} has version {version}; this release reads up to {newest}" in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"v",
        b"v0",
        b"1",
        b"V1",
        b"v1.5",
        b"v-1",
        "v²".encode(),
        b"v1\n\n",
        b'v1\n{"nextB',
        b"v1\n[]",
        b"v1\nnull",
        b'v1\n{"nextBatchWatermarkMs":"0"}',
        b'v1\n{"nextBatchWatermarkMs":1.5}',
        b'v1\n{"nextBatchWatermarkMs":true}',
        b"v1\n\xff\xfe",
        b"\x00\x00\x00\x00",
        b"v1\n" + b"[" * 100_000,
    ],
)
def test_a_broken_commit_is_corrupt_and_named(local_checkpoint, content):
    local_checkpoint.batch(0).batch(1).write("commits/1", content)
    with pytest.raises(CorruptLogError, match=r"commits/1 is corrupt: .*Do not restart the query"):
        read_logs(local_checkpoint.path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"v1",
        b"v1\n",
        b"v1\n{}",
        b'v1\n{"batchWatermarkMs":0',
        b"v1\n[]\n{}",
        b'v1\n{}\n{"logOff',
        b"v1\n{}\n",
        b'v1\n{"batchTimestampMs":"x"}\n{}',
        b"v2\n{}\nno separator",
        b"v2\n{}\n:5",
        b"v2\n{}\norders:",
        b"v1\n{}\n\xc3",
    ],
)
def test_a_broken_offset_file_is_corrupt_and_named(local_checkpoint, content):
    local_checkpoint.batch(0).offset(1).write("offsets/1", content)
    with pytest.raises(CorruptLogError, match=r"offsets/1 is corrupt: .*Do not restart the query"):
        read_logs(local_checkpoint.path)


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"[]", b'{"id":1}', b'{"id":""}', b"\xff"])
def test_broken_metadata_is_corrupt_and_named(local_checkpoint, content):
    local_checkpoint.batch(0).write("metadata", content)
    with pytest.raises(CorruptLogError, match="metadata is corrupt"):
        read_logs(local_checkpoint.path)


@pytest.mark.parametrize("left", ["offsets/0", "commits/0"])
def test_missing_metadata_is_corrupt_once_there_are_batches(checkpoint, left):
    gone = "commits/0" if left == "offsets/0" else "offsets/0"
    checkpoint.batch(0).delete("metadata", gone)
    with pytest.raises(CorruptLogError, match="metadata is corrupt: it is missing"):
        read_logs(checkpoint.path)


def test_the_query_id_is_read_alone(checkpoint):
    assert read_query_id(checkpoint.metadata("abc").path) == "abc"


def test_a_batch_that_ends_while_being_looked_at_is_pending_never_done(checkpoint, after_listing):
    checkpoint.batch(0)
    after_listing(log, "commits", lambda: checkpoint.batch(1))
    logs = read_logs(checkpoint.path)
    assert (logs.committed.batch_id, logs.planned.batch_id) == (0, 1)
    assert logs.committed_offsets.sources == {"0": {"logOffset": 0}}


@pytest.mark.parametrize("folder", ["commits", "offsets"])
def test_a_batch_that_is_purged_while_being_looked_at_is_looked_for_again(
    checkpoint, after_listing, folder
):
    checkpoint.batch(0)

    def run_on():
        for batch in range(1, 6):
            checkpoint.batch(batch)
        checkpoint.purge(4)

    after_listing(log, folder, run_on)
    logs = read_logs(checkpoint.path)
    assert (logs.committed.batch_id, logs.planned.batch_id) == (5, 5)


def test_a_purge_that_has_only_reached_the_offsets_is_not_corruption(checkpoint, after_listing):
    checkpoint.batch(0)

    def run_on():
        for batch in range(1, 6):
            checkpoint.batch(batch)
        checkpoint.delete("offsets/0", "offsets/1")  # Spark purges offsets/ before commits/

    after_listing(log, "commits", run_on)
    assert read_progress(checkpoint.path).state in {State.COMMITTED, State.PENDING}


def test_a_checkpoint_that_never_rests_is_given_up(checkpoint, after_listing):
    checkpoint.batch(0)

    def replace(batch):
        checkpoint.batch(batch + 1).purge(batch + 1)

    after_listing(log, "offsets", *(lambda batch=batch: replace(batch) for batch in range(100)))
    with pytest.raises(CorruptLogError, match=r"keeps changing .* Stop all but one of them"):
        read_logs(checkpoint.path)


def test_a_checkpoint_and_an_empty_folder_are_accepted(local_checkpoint, tmp_path):
    require_checkpoint(local_checkpoint.metadata().path)
    (tmp_path / "empty").mkdir()
    require_checkpoint(UPath(tmp_path / "empty"))


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("nowhere", "the path does not exist"),
        ("data/part-0.parquet", "is a file"),
        ("data", "it has none of metadata, offsets/ and commits/. It holds part-0.parquet"),
    ],
)
def test_what_is_no_checkpoint_is_refused(store, name, fact):
    (store / "data").mkdir(parents=True)
    (store / "data" / "part-0.parquet").write_bytes(b"")
    with pytest.raises(NotACheckpointError, match="checkpointLocation") as caught:
        require_checkpoint(store / name)
    assert fact in str(caught.value)


@settings(max_examples=50)
@given(name=st.sampled_from(FILES), content=st.binary(max_size=80))
def test_no_bytes_make_reading_crash(new_checkpoint, name, content):
    checkpoint = new_checkpoint().batch(0).batch(1).write(name, content)
    with suppress(TidegateError):
        read_logs(checkpoint.path)


@settings(max_examples=60)
@given(
    name=st.sampled_from(FILES),
    at=st.floats(0, 1, exclude_max=True),
    replacement=st.binary(min_size=1, max_size=3),
)
def test_no_overwritten_bytes_make_reading_crash(new_checkpoint, name, at, replacement):
    checkpoint = new_checkpoint().batch(0, {"orders": {"0": 5}}).batch(1, {"orders": {"0": 9}})
    data = checkpoint.read(name)
    start = int(at * len(data))
    checkpoint.write(name, data[:start] + replacement + data[start + len(replacement) :])
    progress = read_progress(checkpoint.path)
    assert progress.state in State
    assert progress.is_readable or name in progress.problem


@settings(max_examples=40)
@given(lines=st.lists(JSON, min_size=1, max_size=3))
def test_no_json_makes_reading_crash(new_checkpoint, lines):
    text = "\n".join(["v1", *map(json.dumps, lines)])
    checkpoint = new_checkpoint().batch(0).write("offsets/0", text).write("commits/0", text)
    assert read_progress(checkpoint.path).state in {State.COMMITTED, State.CORRUPT}


@settings(max_examples=60)
@given(version=st.integers(1, 3), at=st.floats(0, 1, exclude_max=True))
def test_a_cut_commit_is_corrupt_unless_it_is_cut_to_its_version(new_checkpoint, version, at):
    checkpoint = new_checkpoint().batch(0).offset(1).commit(1, version=version)
    size = int(at * len(checkpoint.read("commits/1")))
    state = read_progress(checkpoint.cut("commits/1", size).path).state
    assert state is (State.COMMITTED if size in {2, 3} else State.CORRUPT)


@settings(max_examples=60)
@given(is_named=st.booleans(), is_committed=st.booleans(), at=st.floats(0, 1, exclude_max=True))
def test_a_cut_offset_file_is_always_corrupt(new_checkpoint, is_named, is_committed, at):
    checkpoint, position = new_checkpoint().batch(0), {"orders": {"0": 1234}}
    if is_named:
        checkpoint.named_offset(1, {"orders": position})
    else:
        checkpoint.offset(1, position)
    if is_committed:
        checkpoint.commit(1)
    checkpoint.cut("offsets/1", int(at * len(checkpoint.read("offsets/1"))))
    progress = read_progress(checkpoint.path)
    assert progress.state is State.CORRUPT
    assert "offsets/1" in progress.problem
