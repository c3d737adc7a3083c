"""Reading the file source's log: spelling, compaction, damage."""

import pytest

from tidegate.core.checkpoint import filelog
from tidegate.core.checkpoint.filelog import LoggedFile, read_file_log, strip_scheme
from tidegate.core.errors import CorruptLogError, UnsupportedLogError

MISSING = "it is missing, and later ones need it"
ENTRY = '{"path":"file:///a","timestamp":1,"batchId":0}'


def read_paths(checkpoint):
    return [file.path for file in read_file_log(checkpoint.path, "0")]


def test_a_log_that_does_not_exist_is_empty(checkpoint):
    assert read_file_log(checkpoint.path, "0") == []


def test_an_entry_has_its_path_time_and_offset(checkpoint):
    checkpoint.log_files(0, "/landing/a.json", modified_ms=1794800606036)
    assert read_file_log(checkpoint.path, "0") == [LoggedFile("/landing/a.json", 1794800606036, 0)]


@pytest.mark.parametrize(
    "name",
    [
        "a b.txt",
        "c%20d.txt",
        "50%.txt",
        "é.txt",
        "日本.txt",
        "h#h.txt",
        "q?q.txt",
        "p+p.txt",
        "{x}.txt",
        "br[1].txt",
        "tilde~'\"quote.txt",
        "back\\slash.txt",
        "a&b=c;d,e.txt",
        "p:q.txt",
    ],
)
def test_names_are_decoded_once(local_checkpoint, name):
    local_checkpoint.log_files(0, f"/landing/{name}")
    assert read_paths(local_checkpoint) == [f"/landing/{name}"]


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:///data/a", "/data/a"),
        ("file:/data/a", "/data/a"),
        ("/data/a", "/data/a"),
        ("/data/a:/b", "/data/a:/b"),
        ("s3a://bucket/key/a", "bucket/key/a"),
        ("gs://bucket/a", "bucket/a"),
        ("bucket/key", "bucket/key"),
    ],
)
def test_urls_are_spelled_as_fsspec_lists_them(url, path):
    assert strip_scheme(url) == path


@pytest.mark.parametrize("count", [1, 9, 10, 11, 20, 25])
def test_a_compacted_log_still_holds_every_file(checkpoint, count):
    checkpoint.batches(count)
    assert read_paths(checkpoint) == [f"/landing/{batch}.json" for batch in range(count)]


def test_files_older_than_the_newest_compaction_are_not_needed(checkpoint):
    checkpoint.batches(22).delete(*(f"sources/0/{batch}" for batch in range(9)))
    checkpoint.delete("sources/0/9.compact", *(f"sources/0/{batch}" for batch in range(10, 19)))
    assert len(read_paths(checkpoint)) == 22


def test_offsets_are_kept_through_compaction(checkpoint):
    checkpoint.batches(12)
    logged = read_file_log(checkpoint.path, "0")
    assert [file.log_offset for file in logged] == list(range(12))


def test_a_named_source_has_a_log_of_its_own(checkpoint):
    checkpoint.log_files(0, "/landing/a", source="orders")
    assert [file.path for file in read_file_log(checkpoint.path, "orders")] == ["/landing/a"]
    assert read_paths(checkpoint) == []


@pytest.mark.parametrize("name", ["1.tmp", "x", ".compact", "x.compact", "1.compact.tmp", "²"])
def test_other_names_are_no_log(local_checkpoint, name):
    local_checkpoint.log_files(0, "/landing/a").litter("sources/0", 1).put(
        f"sources/0/{name}", b"?"
    )
    assert read_paths(local_checkpoint) == ["/landing/a"]


def test_a_log_that_is_compacted_while_being_read_is_listed_again(checkpoint, after_listing):
    checkpoint.batches(9)

    def compact():
        checkpoint.log_files(9, "/landing/9.json")
        checkpoint.delete(*(f"sources/0/{batch}" for batch in range(9)))

    after_listing(filelog, "0", compact)
    assert len(read_paths(checkpoint)) == 10


def test_a_log_that_never_rests_is_given_up(checkpoint, after_listing):
    checkpoint.log_files(9, "/landing/9")

    def compact(offset):
        checkpoint.log_files(offset + 10, "/landing/x").delete(f"sources/0/{offset}.compact")

    after_listing(filelog, "0", *(lambda ten=ten: compact(10 * ten + 9) for ten in range(8)))
    with pytest.raises(CorruptLogError, match=r"keeps changing .* Stop all but one of them"):
        read_file_log(checkpoint.path, "0")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"path":"a","timestamp":1}',
        '{"path":"a","timestamp":"x","batchId":0}',
        '{"path":"a","timestamp":1,"batchId":null}',
        '{"path":"a","timestamp":1,"batchId":[]}',
        '{"path":"a","timestamp":1e999,"batchId":0}',
        '{"path":"a","timestamp":1,"batchId":NaN}',
        '{"path":null,"timestamp":1,"batchId":0}',
    ],
)
@pytest.mark.parametrize("name", ["0", "9.compact"])
def test_a_broken_entry_is_corrupt_and_its_file_named(local_checkpoint, name, line):
    local_checkpoint.write(f"sources/0/{name}", f"v1\n{ENTRY}\n{line}\n{ENTRY}")
    with pytest.raises(CorruptLogError, match=f"sources/0/{name} is corrupt"):
        read_file_log(local_checkpoint.path, "0")


@pytest.mark.parametrize("size", [0, 1, 20, -1])
def test_a_truncated_log_is_corrupt(checkpoint, size):
    checkpoint.log_files(0, "/landing/a").cut("sources/0/0", size)
    with pytest.raises(CorruptLogError, match="sources/0/0 is corrupt"):
        read_file_log(checkpoint.path, "0")


def test_a_newer_version_is_named(checkpoint):
    checkpoint.write("sources/0/0", f"v2\n{ENTRY}")
    with pytest.raises(UnsupportedLogError, match=r"has version 2; .* Upgrade tidegate"):
        read_file_log(checkpoint.path, "0")


@pytest.mark.parametrize(
    ("batches", "gone"),
    [(4, "sources/0/0"), (4, "sources/0/1"), (13, "sources/0/10"), (13, "sources/0/11")],
)
def test_a_gap_is_corrupt_since_spark_cannot_start_from_it(checkpoint, batches, gone):
    checkpoint.batches(batches).delete(gone)
    with pytest.raises(CorruptLogError, match=rf"{gone} is corrupt: {MISSING}\. Do not restart"):
        read_file_log(checkpoint.path, "0")


@pytest.mark.parametrize(("batches", "up_to"), [(0, 0), (3, 3), (10, 10), (12, 14)])
def test_a_log_that_ends_before_a_known_offset_is_corrupt(checkpoint, batches, up_to):
    checkpoint.batches(batches)
    with pytest.raises(CorruptLogError, match=rf"sources/0/{batches} is corrupt: {MISSING}\."):
        read_file_log(checkpoint.path, "0", up_to=up_to)


@pytest.mark.parametrize("batches", [1, 10, 12])
def test_a_log_may_go_beyond_a_known_offset(checkpoint, batches):
    checkpoint.batches(batches)
    for up_to in (-1, 0, batches - 1):
        assert len(read_file_log(checkpoint.path, "0", up_to=up_to)) == batches
