"""A Delta table's log, with checksum files and without."""

import json

import pytest
from upath import UPath

from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import SourceError

# As Delta 4.4 on Spark 4.2 wrote it, shortened.
SPARK_COMMIT = [
    {
        "commitInfo": {
            "timestamp": 1794800988908,
            "operation": "WRITE",
            "operationMetrics": {"numFiles": "2", "numOutputRows": "1020"},
            "engineInfo": "Apache-Spark/4.2.0 Delta-Lake/4.4.0",
        }
    },
    {"txn": {"appId": "query:main", "version": 3, "lastUpdated": 1794800988908}},
    {"txn": {"appId": "other:main", "version": 7}},
]


@pytest.fixture
def table(table_at, tmp_path):
    return table_at(tmp_path / "table")


@pytest.fixture
def log(table):
    return DeltaLog(UPath(table.path))


def put_commit(store, version, actions):
    folder = store / "_delta_log"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{version:020}.json").write_text("\n".join(map(json.dumps, actions)) + "\n")


def test_where_there_is_no_table_there_is_no_version(store):
    assert DeltaLog(store / "nowhere").find_version() is None
    with pytest.raises(SourceError, match=r"There is no Delta table at .*nowhere\. Run the pipe"):
        DeltaLog(store / "nowhere").require_version()


def test_a_folder_of_files_is_no_table(store):
    (store / "_delta_log").mkdir(parents=True)
    (store / "_delta_log" / "_last_checkpoint").write_text("{}")
    assert DeltaLog(store).find_version() is None


@pytest.mark.parametrize("versions", [[0], [0, 1, 2], [8, 9, 10], [99, 100]])
def test_the_newest_commit_is_the_version(store, versions):
    for version in versions:
        put_commit(store, version, SPARK_COMMIT)
    assert DeltaLog(store).require_version() == versions[-1]


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000009.crc",
        "00000000000000000009.checkpoint.parquet",
        ".00000000000000000009.json.crc",
        ".00000000000000000009.json.0123.tmp",
        "00000000000000000009.json.tmp",
        "9.json",
        "00000000000000000005.00000000000000000009.compacted.json",
    ],
)
def test_other_files_of_the_log_are_no_commits(store, name):
    put_commit(store, 3, SPARK_COMMIT)
    (store / "_delta_log" / name).write_text("{}")
    assert DeltaLog(store).find_version() == 3


@pytest.mark.parametrize("name", ["plain", "a b", "50%", "h#h", "é"])
def test_a_table_without_checksums_is_asked_itself(table_at, tmp_path, name):
    table = table_at(tmp_path / name).append(app_id="query:main").append()
    log = DeltaLog(UPath(table.path))
    assert log.require_version() == 1
    assert log.read_table_id(1) == table.id
    assert log.find_transaction(1, "query:main") == 0


def test_a_transaction_is_the_one_as_of_its_version(table, log):
    for batch in (4, 5):
        table.append(app_id="query:main", batch=batch)
    assert log.find_transaction(0, "query:main") == 4
    assert log.find_transaction(1, "query:main") == 5
    assert log.find_transaction(1, "another") is None


def test_a_checksum_saves_loading_the_table(store):
    put_commit(store, 3, SPARK_COMMIT)
    recorded = [{"appId": "other", "version": 1}, {"appId": "query:main", "version": 3}]
    body = {"metadata": {"id": "table id"}, "setTransactions": recorded}
    (store / "_delta_log" / f"{3:020}.crc").write_text(json.dumps(body))
    log = DeltaLog(store)  # there is nothing else of the table to load
    assert log.read_table_id(3) == "table id"
    assert log.find_transaction(3, "query:main") == 3
    assert log.find_transaction(3, "another") is None


def test_a_checksum_that_tells_too_little_is_made_up_for(table, log):
    table.append(app_id="query:main", batch=4).checksum(0)
    assert log.read_table_id(0) == table.id
    assert log.find_transaction(0, "query:main") == 4


@pytest.mark.parametrize("content", ["", "{", "[]"])
def test_a_broken_checksum_is_made_up_for(table, log, content):
    table.append(app_id="query:main", batch=4)
    (table.log / f"{0:020}.crc").write_text(content)
    assert log.read_table_id(0) == table.id
    assert log.find_transaction(0, "query:main") == 4


def test_a_commit_tells_its_time_rows_and_batches(store):
    put_commit(store, 4, SPARK_COMMIT)
    commit = DeltaLog(store).read_commit(4)
    assert (commit.version, commit.timestamp_ms, commit.rows) == (4, 1794800988908, 1020)
    assert commit.transactions == {"query:main": 3, "other:main": 7}
    assert commit.change_files == 0


def test_a_commit_tells_how_many_files_of_changes_it_has(store):
    change = {"cdc": {"path": "_change_data/x", "size": 1}}
    put_commit(store, 4, [*SPARK_COMMIT, change, {"add": {"path": "x"}}, change])
    assert DeltaLog(store).read_commit(4).change_files == 2


def test_a_commit_of_another_writer_may_not_tell_its_rows(table, log):
    table.append(app_id="query:main", batch=4)
    commit = log.read_commit(0)
    assert (commit.rows, commit.transactions) == (None, {"query:main": 4})
    assert commit.timestamp_ms > 1_700_000_000_000


def test_a_commit_may_tell_nothing_of_itself(store):
    put_commit(store, 0, [{"protocol": {"minReaderVersion": 1}}])
    commit = DeltaLog(store).read_commit(0)
    assert (commit.timestamp_ms, commit.rows, commit.transactions) == (0, None, {})


def test_a_merge_counts_what_it_changed_and_not_what_it_copied(store):
    metrics = {
        "numOutputRows": "90",
        "numTargetRowsCopied": "87",
        "numTargetRowsInserted": "2",
        "numTargetRowsUpdated": "1",
        "numTargetRowsDeleted": "4",
    }
    put_commit(store, 0, [{"commitInfo": {"operation": "MERGE", "operationMetrics": metrics}}])
    assert DeltaLog(store).read_commit(0).rows == 7


def test_a_write_without_files_has_no_rows(store):
    put_commit(store, 0, [{"commitInfo": {"operation": "WRITE"}}, {"remove": {"path": "x"}}])
    assert DeltaLog(store).read_commit(0).rows == 0
