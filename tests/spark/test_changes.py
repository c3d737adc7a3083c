"""Change records into rows: Debezium's, and those of a Delta table."""

import json
from pathlib import Path

import pytest

from tests.spark.delta_bench import open_small_session
from tidegate.core.errors import TransformError
from tidegate.core.spec.sinks.delta import DeltaSink
from tidegate.core.spec.transform import ChangesStep
from tidegate.spark.changes import read_changes
from tidegate.spark.sinks.delta import DeltaHistory, DeltaUpsert

ROW = "struct<id:long,v:string>"
ENVELOPE = f"before {ROW}, after {ROW}, op string, ts_ms long, source struct<lsn:long>"
UPSERT = {
    "type": "delta",
    "table": "out",
    "mode": "upsert",
    "keys": ["id"],
    "sequence": "_sequence",
    "delete_when": "_deleted",
}


@pytest.fixture(scope="module")
def session(spark):
    return open_small_session(spark)


@pytest.fixture
def read(session):
    """Turn records into rows, in order of their sequence."""

    def turn(records, schema=ENVELOPE, **step):
        frame = session.createDataFrame(records, schema)
        given = ChangesStep.model_validate({"changes": "debezium"} | step)
        return read_changes(frame, given, "Step 1 of p").orderBy("_sequence")

    return turn


def collect(frame):
    return [tuple(row) for row in frame.collect()]


RECORDS = [
    (None, (1, "a"), "c", 10, (100,)),
    (None, (2, "b"), "r", 11, (101,)),
    ((1, "a"), (1, "a2"), "u", 12, (102,)),
    ((2, "b"), None, "d", 13, (103,)),
    (None, None, None, None, None),
]


def test_a_change_of_debezium_is_its_row_and_what_became_of_it(read):
    changes = read(RECORDS)
    assert changes.schema.simpleString() == (
        "struct<id:bigint,v:string,_deleted:boolean,_sequence:bigint>"
    )
    assert collect(changes) == [
        (1, "a", False, 10),
        (2, "b", False, 11),
        (1, "a2", False, 12),
        (2, "b", True, 13),
    ]


def test_the_envelope_may_be_inside_payload(read):
    payload = f"struct<before:{ROW},after:{ROW},op:string,ts_ms:long,source:struct<lsn:long>>"
    records = [("meta", record, n) for n, record in enumerate(RECORDS)] + [(None, None, 9)]
    schema = f"schema string, payload {payload}, _offset long"
    by_lsn = read(records, schema, sequence="source.lsn")
    assert [row[-1] for row in collect(by_lsn)] == [100, 101, 102, 103]
    by_offset = read(records, schema, sequence="_offset")
    assert collect(by_offset)[-1] == (2, "b", True, 3)


def test_a_sequence_is_any_expression(read):
    changes = read(RECORDS[:1], sequence="timestamp_millis(ts_ms)")
    assert changes.schema["_sequence"].dataType.simpleString() == "timestamp"


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ((None, None, "t", 1, None), "whole table was truncated.*skipped.operations"),
        ((None, None, "m", 1, None), "none of c, r, u and d: m"),
        ((None, (1, "a"), None, 1, None), "none of c, r, u and d: null"),
    ],
)
def test_a_record_that_is_no_change_of_a_row_fails(read, record, told):
    changes = read([record])
    with pytest.raises(Exception, match=told):
        changes.select("id").collect()


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ("after struct<id:long>, x int", "there is no before, op. Its input is struct<after:"),
        ("before int, after int, op int", "before is int, not a struct; after is int, .*op is int"),
        (
            "before struct<id:long>, after struct<id:int>, op string",
            "before and after have different columns",
        ),
        (
            "before struct<_deleted:int>, after struct<_deleted:int>, op string",
            "its rows have _deleted, which the step is to add",
        ),
        ("payload string", "there is no before, after, op"),
    ],
)
def test_records_that_are_not_debezium_s_are_told(read, schema, told):
    with pytest.raises(TransformError, match=rf"Step 1 of p reads no change.*{told}.*Name before"):
        read([], schema)


@pytest.mark.parametrize("sequence", ["source.nothing", "nothing", "source."])
def test_a_sequence_that_is_not_there_is_told(read, sequence):
    with pytest.raises(TransformError, match=r"cannot order changes by .*A change has before, aft"):
        read([], sequence=sequence)


def test_the_default_sequence_needs_its_column(read):
    with pytest.raises(TransformError, match="cannot order changes by ts_ms"):
        read([], f"before {ROW}, after {ROW}, op string")


MERGE = (
    "MERGE INTO {} t USING (SELECT 1L AS id UNION SELECT 4L) s ON t.id = s.id "
    "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'd')"
)
FEED = "id long, v string, _change_type string, _commit_version long, _commit_timestamp timestamp"


def test_the_insert_counts_where_a_version_deletes_and_inserts(read):
    records = [
        (1, "old", "delete", 3, None),
        (1, "new", "insert", 3, None),
        (2, "x", "update_preimage", 4, None),
        (2, "y", "update_postimage", 4, None),
    ]
    assert collect(read(records, FEED, changes="delta")) == [
        (1, "old", True, 6),
        (1, "new", False, 7),
        (2, "y", False, 9),
    ]


def test_rows_that_are_no_feed_are_told(read):
    with pytest.raises(
        TransformError, match=r"no change data feed: there is no _change_type; ther"
    ):
        read([], "id long, v string", changes="delta")
    with pytest.raises(TransformError, match=r"its rows have _deleted.*change_data_feed: true"):
        read([], f"{FEED}, _deleted boolean", changes="delta")


def test_a_table_follows_another_by_its_feed(session, settings, read):
    """Every kind of change of a real table, taken over by upsert and by a history."""
    where = settings.locate_url("in")
    session.sql(
        f"CREATE TABLE delta.`{where}` (id long, v string) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    for statement in (
        "INSERT INTO {} VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "UPDATE {} SET v = 'b2' WHERE id = 2",
        "DELETE FROM {} WHERE id = 3",
        MERGE,
        "INSERT OVERWRITE {} VALUES (2, 'b3'), (5, 'e')",
    ):
        session.sql(statement.format(f"delta.`{where}`"))
    feed = session.read.option("readChangeFeed", "true").option("startingVersion", 0)
    step = ChangesStep(changes="delta")
    changes = read_changes(feed.format("delta").load(where), step, "Step 1 of p")
    upsert = DeltaUpsert(
        DeltaSink.model_validate(UPSERT | {"columns": ["id", "v", "_sequence"]}), settings
    )
    history = DeltaHistory(
        DeltaSink.model_validate(UPSERT | {"mode": "scd2", "table": "history"}), settings
    )
    for writer in (upsert, history):
        writer.prepare(session, changes.schema)
        writer.write(changes, 0, "query")
    rows = session.read.format("delta").load(settings.locate_url("out"))
    assert sorted(collect(rows.select("id", "v"))) == [(2, "b3"), (5, "e")]
    versions = session.read.format("delta").load(settings.locate_url("history"))
    of_two = versions.where("id = 2").orderBy("valid_from").select("v", "valid_from", "valid_to")
    assert collect(of_two) == [("b", 3, 5), ("b2", 5, 10), ("b3", 11, None)]
    current = versions.where("is_current").select("id", "v")
    assert sorted(collect(current)) == [(2, "b3"), (5, "e")]


def test_a_run_reads_changes_of_debezium(runs, pipeline_of, settings, rows_of):
    folder = Path(settings.data) / "landing"
    folder.mkdir(parents=True)
    changes = [
        {"after": {"id": 1, "v": "a"}, "op": "c", "ts_ms": 1, "source": {"lsn": 5}},
        {"before": {"id": 1, "v": "a"}, "op": "d", "ts_ms": 1, "source": {"lsn": 6}},
    ]
    (folder / "a.json").write_text("\n".join(map(json.dumps, changes)))
    source = {
        "type": "files",
        "path": "landing",
        "format": "json",
        "schema": ENVELOPE,
        "max_files_per_trigger": 1,
    }
    step = {"changes": "debezium", "sequence": "source.lsn"}
    runs.run(pipeline_of(source, transform=[step]))
    assert rows_of("out") == [(1, "a", False, 5), (1, "a", True, 6)]


def test_a_run_tells_that_a_table_was_truncated(runs, pipeline_of, settings):
    folder = Path(settings.data) / "landing"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text('{"op": "t", "ts_ms": 1}')
    source = {
        "type": "files",
        "path": "landing",
        "format": "json",
        "schema": ENVELOPE,
        "max_files_per_trigger": 1,
    }
    pipeline = pipeline_of(source, transform={"changes": "debezium"})
    with pytest.raises(Exception, match="truncated"):
        runs.run(pipeline)
    error = runs.ledger(pipeline).find_latest().attempt.error
    assert "whole table was truncated (op t)" in error


CORRUPT = f"{ENVELOPE}, _corrupt_record string, _file string"


@pytest.mark.parametrize(
    "record",
    [
        pytest.param((None, None, None, None, None, "{", "a.json"), id="no JSON"),
        pytest.param((None, (1, None), "c", 1, None, '{"op":…', "a.json"), id="a wrong value"),
    ],
)
def test_a_record_that_did_not_parse_is_neither_a_tombstone_nor_a_row(read, record):
    with pytest.raises(Exception, match=r"A change record in a\.json does not parse.*by a step"):
        read([record], CORRUPT).select("id").collect()


def test_records_of_files_that_do_not_parse_are_put_aside(runs, pipeline_of, settings, rows_of):
    folder = Path(settings.data) / "landing"
    folder.mkdir(parents=True)
    good = '{"after": {"id": 1, "v": "a"}, "op": "c", "ts_ms": 1}'
    wrong = ['{"after": {"id": "one", "v": "a"}, "op": "c", "ts_ms": 2}', "{nothing"]
    tombstone = "{}"
    (folder / "a.json").write_text("\n".join([good, *wrong, tombstone]))
    source = {
        "type": "files",
        "path": "landing",
        "format": "json",
        "schema": ENVELOPE,
        "max_files_per_trigger": 1,
    }
    pipeline = pipeline_of(source, transform={"changes": "debezium"})
    run = runs.run(pipeline)
    assert rows_of("out") == [(1, "a", False, 1)]
    assert run.summary.quarantined == 2
    aside = rows_of("quarantine/p", "rule", "reason", "value", "file")
    assert [bytes(row[2]).decode() for row in aside] == wrong
    assert {row[:2] for row in aside} == {("malformed", "the value does not fit the schema")}
    assert all(row[3].endswith("/landing/a.json") for row in aside)
