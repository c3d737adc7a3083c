"""Each way in which a checkpoint can be wrong is told: code, severity, file, what to do."""

import io
import json
import zipfile

import pytest

from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.doctor.checkpoint import examine_checkpoint, glance_at_checkpoint
from tidegate.core.doctor.fault import Severity, list_errors

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO


def examine(checkpoint):
    return {(fault.code, fault.severity) for fault in examine_checkpoint(checkpoint.path)}


def find(checkpoint, code):
    (fault,) = [fault for fault in examine_checkpoint(checkpoint.path) if fault.code == code]
    return fault


def test_a_sound_checkpoint_has_no_faults(checkpoint):
    assert examine(checkpoint.batches(12)) == set()


def test_a_query_that_never_ran_is_told_so(checkpoint):
    assert examine(checkpoint.metadata()) == {("never_ran", INFO)}


def test_a_pending_batch_is_worth_knowing(checkpoint):
    checkpoint.batches(2).log_files(2, "/landing/2.json").offset(2)
    assert examine(checkpoint) == {("pending", INFO)}


@pytest.mark.parametrize(
    ("damage", "code", "severity", "file", "told"),
    [
        (
            lambda c: c.delete("offsets/2"),
            *("commit_ahead", ERROR, "offsets/2", "CONCURRENT_STREAM_LOG_UPDATE"),
        ),
        (
            lambda c: c.delete("offsets"),
            *("offsets_missing", ERROR, "offsets", "assertion failed"),
        ),
        (
            lambda c: c.delete("offsets/1"),
            *("start_missing", ERROR, "offsets/1", "batch 1 doesn't exist"),
        ),
        (
            lambda c: c.write("offsets/2", 'v1\n{"batchWatermarkMs":0}\n-'),
            *("position_lost", ERROR, "offsets/2", "the file was changed"),
        ),
        (
            lambda c: c.write("offsets/2", 'v1\n{"batchWatermarkMs":0}\n{"foo":1}'),
            *("position_lost", ERROR, "offsets/2", "the file was changed"),
        ),
        (lambda c: c.delete("offsets/0"), "offsets_gap", INFO, "offsets/0", "does not read"),
        (lambda c: c.delete("commits/0"), "commits_gap", INFO, "commits/0", "does not read"),
        (lambda c: c.delete("commits/2"), "pending", INFO, "offsets/2", "the same offsets"),
        (
            lambda c: c.delete("commits/2", "commits/1"),
            *("commits_missing", WARNING, "commits", "run batch 2 again"),
        ),
        (
            lambda c: c.delete("commits"),
            *("commits_missing", WARNING, "commits", "all commits are gone"),
        ),
        (
            lambda c: c.delete("metadata"),
            *("metadata_missing", ERROR, "metadata", "STREAMING_CHECKPOINT_MISSING_METADATA_FILE"),
        ),
        (
            lambda c: c.write("metadata", ""),
            *("metadata_corrupt", ERROR, "metadata", "No content to map"),
        ),
        (
            lambda c: c.write("commits/2", ""),
            *("commit_corrupt", ERROR, "commits/2", "Incomplete log file"),
        ),
        (
            lambda c: c.write("commits/2", 'v1\n{"nextBa'),
            *("commit_corrupt", ERROR, "commits/2", "Unexpected end-of-input"),
        ),
        (
            lambda c: c.write("commits/0", ""),
            *("old_commit_corrupt", WARNING, "commits/0", "old batch"),
        ),
        (
            lambda c: c.write("offsets/2", ""),
            *("offset_corrupt", ERROR, "offsets/2", "Incomplete log file"),
        ),
        (
            lambda c: c.write("offsets/2", "v1"),
            *("offset_corrupt", ERROR, "offsets/2", "next on empty iterator"),
        ),
        (
            lambda c: c.write("offsets/1", "v1\n{"),
            *("offset_corrupt", ERROR, "offsets/1", "Unexpected end-of-input"),
        ),
        (
            lambda c: c.write("commits/2", "v9\n{}"),
            *("unsupported_version", ERROR, "commits/2", "newer Spark"),
        ),
        (
            lambda c: c.offset(2, {"logOffset": 2}, {"logOffset": 2}),
            *("source_count_changed", ERROR, "offsets/2", "There are [2] sources"),
        ),
        (
            lambda c: c.offset(2, {"logOffset": 0}),
            *("offset_backward", ERROR, "offsets/2", "goes back"),
        ),
        (
            lambda c: c.delete("sources/0/2"),
            *("file_log_corrupt", ERROR, "sources/0", "batch 2 doesn't exist"),
        ),
    ],
)
def test_what_is_wrong_is_told(checkpoint, damage, code, severity, file, told):
    damage(checkpoint.batches(3))
    fault = find(checkpoint, code)
    assert fault.severity is severity
    assert fault.file == str(checkpoint.path / file)
    assert told in fault.message
    assert fault.remedy.endswith(".")


def test_a_bare_version_is_a_valid_commit(checkpoint):
    assert (
        list_errors(examine_checkpoint(checkpoint.batches(3).write("commits/2", "v1").path)) == []
    )


@pytest.mark.parametrize("share", [0, 0.01, 0.1, 0.5, 0.99])
def test_offsets_that_are_cut_off_are_an_error_wherever_it_is(checkpoint, share):
    size = len(checkpoint.batches(3).read("offsets/2"))
    checkpoint.cut("offsets/2", int(share * size))
    assert find(checkpoint, "offset_corrupt").severity is ERROR


def test_older_offsets_that_go_backward_are_a_warning(checkpoint):
    for batch, end in enumerate([5, 3, 9, 10]):
        checkpoint.batch(batch, {"orders": {"0": end}})
    fault = find(checkpoint, "offset_backward")
    assert (fault.severity, fault.file) == (WARNING, str(checkpoint.path / "offsets" / "1"))


def test_sources_that_go_by_names_may_come(checkpoint):
    checkpoint.named_offset(0, {"a": {"logOffset": 0}}).commit(0)
    checkpoint.named_offset(1, {"a": {"logOffset": 0}, "b": {"orders": {"0": 1}}}).commit(1)
    checkpoint.log_files(0, "/landing/0.json", source="a")
    assert examine(checkpoint) == set()


class TestLitter:
    def test_a_temporary_file_is_ignored_and_named(self, local_checkpoint):
        local_checkpoint.batches(2).put("offsets/.2.0deb1b20.tmp", b"v1")
        local_checkpoint.put("commits/..1.0deb1b20.tmp.crc", b"crc")
        assert examine(local_checkpoint) == {("temporary_file", INFO)}

    def test_an_old_checksum_without_its_file_is_ignored_and_named(self, local_checkpoint):
        local_checkpoint.batches(3)
        (local_checkpoint.path / "commits" / "0").unlink()
        assert examine(local_checkpoint) == {("commits_gap", INFO), ("orphan_checksum", INFO)}

    @pytest.mark.parametrize("name", ["offsets/.3.crc", "commits/.3.crc", "sources/0/.3.crc"])
    def test_a_checksum_that_is_in_the_way_of_the_next_file_is_an_error(
        self, local_checkpoint, name
    ):
        local_checkpoint.batches(3).put(name, b"crc\0")
        fault = find(local_checkpoint, "orphan_checksum")
        assert (fault.severity, fault.remedy) == (ERROR, "Delete it.")
        assert "Multiple streaming queries" in fault.message

    def test_a_checksum_left_by_a_deleted_commit_is_in_the_way(self, local_checkpoint):
        local_checkpoint.batches(3)
        (local_checkpoint.path / "commits" / "2").unlink()
        assert find(local_checkpoint, "orphan_checksum").severity is ERROR

    def test_a_flipped_byte_is_seen_by_the_checksum(self, local_checkpoint):
        local_checkpoint.batches(3)
        text = local_checkpoint.read("offsets/2").replace(b'"logOffset":2', b'"logOffset":6')
        local_checkpoint.put("offsets/2", text)
        fault = find(local_checkpoint, "checksum_mismatch")
        assert (fault.severity, fault.file) == (WARNING, str(local_checkpoint.path / "offsets/2"))


class TestState:
    @pytest.fixture
    def stateful(self, checkpoint):
        """Three batches of an aggregation in two partitions: changes since a whole of version 1."""
        checkpoint.batches(3)
        checkpoint.put(
            "state/0/_metadata/metadata",
            b'v1\n{"operatorInfo":{"operatorId":0,"operatorName":"stateStoreSave"},"stateStoreInfo":'
            b'[{"storeName":"default","numColsPrefixKey":0,"numPartitions":2}]}',
        )
        for partition in (0, 1):
            checkpoint.put(f"state/0/{partition}/1.snapshot", LZ4)
            for version in (1, 2, 3):
                checkpoint.put(f"state/0/{partition}/{version}.delta", LZ4)
        return checkpoint

    def test_state_that_can_be_loaded_has_no_fault(self, stateful):
        assert examine(stateful) == set()
        stateful.delete("state/0/0/1.delta")
        assert examine(stateful) == set()

    @pytest.mark.parametrize("name", ["0/0/3.delta", "0/1/2.delta"])
    def test_a_missing_version_is_told(self, stateful, name):
        stateful.path.joinpath("state", *name.split("/")).unlink()
        fault = find(stateful, "state_missing")
        assert fault.severity is ERROR
        assert fault.file == str(stateful.path / "state" / name.removesuffix(".delta"))
        assert "CANNOT_LOAD_STATE_STORE" in fault.message

    def test_a_missing_partition_is_told(self, stateful):
        stateful.path.fs.rm((stateful.path / "state" / "0" / "1").path, recursive=True)
        assert find(stateful, "state_missing").file == str(stateful.path / "state" / "0" / "1")

    @pytest.mark.parametrize("size", [0, 10, 30])
    def test_a_file_that_is_cut_off_is_told(self, stateful, size):
        stateful.put("state/0/0/3.delta", LZ4[:size])
        assert find(stateful, "state_corrupt").severity is ERROR

    def test_a_pending_batch_needs_the_version_before_it(self, stateful):
        stateful.offset(3, {"logOffset": 2})
        assert examine(stateful) == {("pending", INFO)}

    def test_an_archive_of_rocksdb_needs_its_files(self, stateful):
        stateful.put("state/0/0/3.zip", pack({"sstFiles": [{"dfsSstFileName": "7-a.sst"}]}))
        assert "SSTs/7-a.sst" in find(stateful, "state_corrupt").message
        stateful.put("state/0/0/SSTs/7-a.sst", b"x")
        assert examine(stateful) == set()
        stateful.put("state/0/0/3.zip", b"PK")
        assert find(stateful, "state_corrupt").severity is ERROR

    def test_files_of_another_codec_are_taken_as_they_are(self, stateful):
        stateful.put("state/0/0/3.delta", b"(\xb5/\xfd rest")
        assert examine(stateful) == set()


def test_a_glance_sees_what_keeps_a_query_from_going_on(checkpoint):
    checkpoint.batches(3).write("commits/0", "").write("offsets/2", "v1")
    assert [fault.code for fault in glance_at_checkpoint(checkpoint.path)] == ["offset_corrupt"]


def test_what_makes_progress_unreadable_is_an_error_of_the_doctor(checkpoint):
    checkpoint.batches(3).delete("offsets/2")
    assert not read_progress(checkpoint.path).is_readable
    assert list_errors(examine_checkpoint(checkpoint.path))


# The bytes of a small block and of the empty one that ends a file, as Spark writes them.
LZ4 = b"LZ4Block\x15\x04\0\0\0\x04\0\0\0\x01\x02\x03\x04data" + b"LZ4Block\x15" + bytes(12)


def pack(metadata):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("metadata", "v1\n" + json.dumps(metadata))
    return buffer.getvalue()


def test_a_folder_where_a_file_should_be_is_told(local_checkpoint):
    local_checkpoint.batches(3).delete("offsets/2").put("offsets/2/x", b"")
    codes = [fault.code for fault in examine_checkpoint(local_checkpoint.path)]
    assert "offset_corrupt" in codes


def test_a_file_where_a_folder_should_be_is_told(local_checkpoint):
    local_checkpoint.batches(3).delete("commits").put("commits", b"")
    (fault,) = examine_checkpoint(local_checkpoint.path)
    assert (fault.code, fault.severity) == ("log_corrupt", ERROR)
    assert "it is a file, and should be a folder" in fault.message


def test_state_that_nothing_describes_is_looked_at_all_the_same(checkpoint):
    checkpoint.batches(3).put("state/0/0/3.delta", b"x").put("state/0/1/2.delta", b"x")
    found = {fault.code: fault.severity for fault in examine_checkpoint(checkpoint.path)}
    assert found == {"state_metadata_missing": WARNING, "state_missing": ERROR}
