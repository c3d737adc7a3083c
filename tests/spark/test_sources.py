"""Every source, read by Spark and planned without it: the two must agree."""

import json
import os
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import SourceError
from tidegate.core.ledger import Decision


@pytest.fixture
def landing(settings) -> Path:
    folder = Path(settings.data) / "landing"
    folder.mkdir(parents=True)
    return folder


def files(file_format: str, **fields) -> dict:
    limit = {} if "max_bytes_per_trigger" in fields else {"max_files_per_trigger": 3}
    base = {"type": "files", "path": "landing", "format": file_format, "provenance": False}
    return base | limit | fields


@pytest.mark.parametrize("file_format", ["json", "csv", "parquet", "orc", "avro"])
def test_structured_formats_are_streamed(runs, spark, pipeline_of, landing, rows_of, file_format):
    frame = spark.createDataFrame([(1, "a"), (2, "b")], "id long, name string").coalesce(1)
    frame.write.format(file_format).mode("append").save(str(landing))
    pipeline = pipeline_of(files(file_format, schema="id long, name string"))
    runs.run(pipeline)
    assert rows_of("out", "id", "name") == [(1, "a"), (2, "b")]
    assert runs.plan(pipeline).decision is Decision.IDLE


def test_text_lines_are_streamed(runs, pipeline_of, landing, rows_of):
    (landing / "a.txt").write_text("one\ntwo\n")
    runs.run(pipeline_of(files("text")))
    assert rows_of("out", "value") == [("one",), ("two",)]


def test_whole_files_are_streamed(runs, pipeline_of, landing, rows_of):
    (landing / "a.bin").write_bytes(b"\x00\xff")
    runs.run(pipeline_of(files("binaryFile")))
    assert rows_of("out", "length", "content") == [(2, bytearray(b"\x00\xff"))]


def test_csv_takes_the_options_of_its_format(runs, pipeline_of, landing, rows_of):
    (landing / "a.csv").write_text("id;name\n1;a\n")
    options = {"header": True, "sep": ";"}
    runs.run(pipeline_of(files("csv", schema="id long, name string", options=options)))
    assert rows_of("out", "id", "name") == [(1, "a")]


@pytest.mark.parametrize(
    ("malformed", "expected"), [("drop", [(1,)]), ("keep", [(1,), (None,)]), ("fail", None)]
)
def test_malformed_records_go_where_the_spec_says(
    runs, pipeline_of, landing, settings, spark, malformed, expected
):
    (landing / "a.json").write_text('{"id": 1}\n{"id": \n')
    pipeline = pipeline_of(files("json", schema="id long", malformed=malformed))
    if expected is None:
        with pytest.raises(Exception, match="MALFORMED_RECORD_IN_PARSING"):
            runs.run(pipeline)
        return
    runs.run(pipeline)
    frame = spark.read.format("delta").load(settings.locate_url("out")).select("id")
    assert {tuple(row) for row in frame.collect()} == set(expected)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, ["top.json"]),
        ({"recursive": True}, ["deep.json", "other.txt", "top.json"]),
        ({"recursive": True, "glob": "*.json"}, ["deep.json", "top.json"]),
        ({"recursive": True, "glob": "{deep,other}.*"}, ["deep.json", "other.txt"]),
        ({"recursive": True, "glob": "[^d]*.json"}, ["top.json"]),
    ],
)
def test_plan_and_spark_see_the_same_files(runs, pipeline_of, landing, rows_of, fields, expected):
    for name in ("top.json", "sub/deep.json", "sub/other.txt", "_hidden.json", ".dot", "_t/x.json"):
        (landing / name).parent.mkdir(exist_ok=True)
        (landing / name).write_text('{"id": 1}\n')
    pipeline = pipeline_of(files("json", schema="id long", **fields) | {"provenance": True})
    run = runs.run(pipeline)
    assert sorted(Path(path).name for path in run.plan.target.paths) == expected
    assert [Path(file).name for (file,) in rows_of("out", "_file")] == expected
    assert runs.plan(pipeline).decision is Decision.IDLE


@pytest.mark.parametrize("policy", ["rescue", "drop"])
def test_partition_folders_are_columns(runs, pipeline_of, landing, rows_of, policy):
    folders = ["day=2026-01-01/place=New York+", "day=2026-01-02/place=a%3Ab", "day=2026-01-03"]
    folders.append("day=__HIVE_DEFAULT_PARTITION__/place=ü=%25")
    for number, folder in enumerate(folders):
        (landing / folder).mkdir(parents=True)
        (landing / folder / "a.json").write_text(f'{{"id": {number}}}\n')
    pipeline = pipeline_of(
        files("json", schema="id long, Day date, place string", on_unknown=policy)
    )
    landed = landing / folders[2] / "place=x"
    landed.mkdir()
    (landing / folders[2] / "a.json").rename(landed / "a.json")
    runs.run(pipeline)
    assert rows_of("out", "id", "day", "place") == [
        (0, date(2026, 1, 1), "New York+"),
        (1, date(2026, 1, 2), "a:b"),
        (2, date(2026, 1, 3), "x"),
        (3, None, "ü=%"),
    ]
    assert runs.plan(pipeline).decision is Decision.IDLE


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("rescue", ["_rescued", "id"]),
        ("evolve", ["_rescued", "at", "id", "more"]),
        ("drop", ["id"]),
        (None, ["id"]),
    ],
)
def test_fields_that_the_schema_does_not_name_go_where_the_spec_says(
    runs, pipeline_of, landing, rows_of, spark, settings, policy, expected
):
    lines = ('{"id": 1}', "", '{"id": 2, "more": {"b": 1.10, "a": "x"}, "at": 5}', "  ")
    (landing / "a.json").write_text("\n".join(lines))
    source = files("json", schema="id long", malformed="drop")
    runs.run(pipeline_of(source | ({"on_unknown": policy} if policy else {})))
    rows = spark.read.format("delta").load(settings.locate_url("out"))
    assert sorted(rows.columns) == expected
    assert rows_of("out", "id") == [(1,), (2,)]
    if "_rescued" in expected:
        rescued = dict(rows_of("out", "id", "_rescued"))
        assert rescued[1] is None
        assert json.loads(rescued[2]) == {"at": 5, "more": {"a": "x", "b": 1.1}}
    if "more" in expected:
        assert rows_of("out", "id", "at", "more.a") == [(1, None, None), (2, 5, "x")]


def test_a_field_that_the_schema_does_not_name_may_stop_the_run(runs, pipeline_of, landing):
    (landing / "a.json").write_text('{"id": 1, "more": 1, "other": 2}')
    pipeline = pipeline_of(files("json", schema="id long", on_unknown="fail"))
    with pytest.raises(Exception, match=r"record in .*a.json: unknown fields more, other"):
        runs.run(pipeline)


@pytest.mark.parametrize("policy", ["rescue", "drop"])
def test_a_record_that_does_not_parse_is_kept_as_it_was_found(
    runs, pipeline_of, landing, rows_of, policy
):
    bad = ['{"id": ', '{"id": "x",  "n": "kept"}', "5"]
    (landing / "a.json").write_text("\n".join(['{"id": 7, "n": "ok"}', *bad]))
    runs.run(pipeline_of(files("json", schema="id long, n string", on_unknown=policy)))
    kept = rows_of("out", "_corrupt_record")
    assert [line for (line,) in kept if line] == sorted(bad)
    assert ("kept",) in rows_of("out", "n")


def test_whole_documents_are_read_by_spark_s_own_reader(runs, pipeline_of, landing, rows_of):
    (landing / "a.json").write_text('[{"id": 1,\n "more": 5},\n {"id": 2}]')
    runs.run(pipeline_of(files("json", schema="id long", options={"multiLine": True})))
    assert rows_of("out", "id") == [(1,), (2,)]


def test_awkward_file_names_are_read_and_covered(runs, pipeline_of, landing, rows_of):
    names = ["a b.json", "per%20cent.json", "hash#1.json", "ünï.json", "plus+.json"]
    for number, name in enumerate(names):
        (landing / name).write_text(f'{{"id": {number}}}\n')
    pipeline = pipeline_of(files("json", schema="id long"))
    runs.run(pipeline)
    assert rows_of("out", "id") == [(number,) for number in range(len(names))]
    assert runs.plan(pipeline).decision is Decision.IDLE


def test_a_name_that_spark_takes_for_a_pattern_is_blocked(runs, pipeline_of, landing):
    """Spark reads the other files of such a file's batch twice."""
    (landing / "a.json").write_text('{"id": 1}\n')
    (landing / "report[1].json").write_text('{"id": 2}\n')
    plan = runs.plan(pipeline_of(files("json", schema="id long")))
    assert plan.decision is Decision.BLOCKED
    assert "report[1].json" in plan.reason
    assert plan.reason.endswith("Rename them.")


def test_bytes_bound_a_batch(runs, pipeline_of, landing):
    for number in range(4):
        (landing / f"{number}.json").write_text('{"id": 1}\n')
    run = runs.run(pipeline_of(files("json", schema="id long", max_bytes_per_trigger=20)))
    assert [batch.input_rows for batch in run.batches] == [2, 2]


def test_a_file_older_than_max_file_age_is_never_read_and_the_plan_says_so(
    runs, pipeline_of, landing, rows_of
):
    pipeline = pipeline_of(files("json", schema="id long", max_file_age="1d"))
    (landing / "new.json").write_text('{"id": 1}\n')
    runs.run(pipeline)
    (landing / "late.json").write_text('{"id": 2}\n')
    (landing / "old.json").write_text('{"id": 3}\n')
    now = (landing / "new.json").stat().st_mtime
    os.utime(landing / "late.json", (now - 3600, now - 3600))
    os.utime(landing / "old.json", (now - 2 * 86400, now - 2 * 86400))
    runs.run(pipeline)
    assert rows_of("out", "id") == [(1,), (2,)]
    plan = runs.plan(pipeline)
    assert plan.decision is Decision.IDLE
    assert "1 files are older than max_file_age" in plan.warning


def test_an_overwritten_file_is_not_read_again(runs, pipeline_of, landing, rows_of):
    pipeline = pipeline_of(files("json", schema="id long"))
    (landing / "a.json").write_text('{"id": 1}\n')
    runs.run(pipeline)
    (landing / "a.json").write_text('{"id": 2}\n')
    assert runs.plan(pipeline).decision is Decision.IDLE
    assert rows_of("out", "id") == [(1,)]


@pytest.mark.parametrize("cleaning", ["archive", "delete"])
def test_read_files_are_cleaned_up(runs, pipeline_of, landing, rows_of, settings, cleaning):
    archive = {"archive_path": "archive"} if cleaning == "archive" else {}
    pipeline = pipeline_of(files("json", schema="id long", clean_source=cleaning, **archive))
    for number in (1, 2, 3):
        (landing / f"{number}.json").write_text(f'{{"id": {number}}}\n')
        runs.run(pipeline)
    assert rows_of("out", "id") == [(1,), (2,), (3,)]
    # Spark cleans a batch's files once a later batch is committed.
    remaining = sorted(path.name for path in landing.iterdir())
    assert "1.json" not in remaining
    archived = {path.name for path in Path(settings.data).glob("archive/**/*.json")}
    assert ("1.json" in archived) == (cleaning == "archive")
    assert runs.plan(pipeline).decision is Decision.IDLE


def test_ten_batches_and_more_are_read_from_the_compacted_log(runs, pipeline_of, landing, settings):
    for number in range(23):
        (landing / f"{number}.json").write_text('{"id": 1}\n')
    source = files("json", schema="id long", max_files_per_trigger=1)
    pipeline = pipeline_of(source)
    run = runs.run(pipeline)
    assert len(run.batches) == 23
    assert (settings.checkpoint_of("p") / "sources" / "0" / "19.compact").exists()
    assert runs.plan(pipeline).decision is Decision.IDLE


@pytest.fixture
def table(spark, settings):
    """A Delta table with versions 0 (created), 1 and 2 (a row each)."""
    location = settings.locate_url("in")
    spark.sql(
        f"CREATE TABLE delta.`{location}` (id long) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    for number in (1, 2):
        spark.sql(f"INSERT INTO delta.`{location}` VALUES ({number})")
    return location


def delta(**fields) -> dict:
    return {"type": "delta", "table": "in", "max_files_per_trigger": 1} | fields


def test_a_table_is_streamed_and_then_idle_until_it_grows(runs, pipeline_of, spark, table, rows_of):
    pipeline = pipeline_of(delta())
    run = runs.run(pipeline)
    assert rows_of("out", "id") == [(1,), (2,)]
    assert run.plan.target.version == 2
    assert runs.plan(pipeline).decision is Decision.IDLE
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (3)")
    runs.run(pipeline)
    assert rows_of("out", "id") == [(1,), (2,), (3,)]


def test_an_empty_table_is_reached_too(runs, pipeline_of, spark, settings, rows_of):
    spark.sql(f"CREATE TABLE delta.`{settings.locate_url('in')}` (id long) USING delta")
    pipeline = pipeline_of(delta())
    runs.run(pipeline)
    assert rows_of("out") == []
    assert runs.plan(pipeline).decision is Decision.IDLE


@pytest.mark.parametrize(
    "change",
    ["OPTIMIZE delta.`{0}`", "ALTER TABLE delta.`{0}` SET TBLPROPERTIES ('a.b' = 'c')"],
)
def test_a_version_without_rows_is_reached(runs, pipeline_of, spark, table, rows_of, change):
    pipeline = pipeline_of(delta())
    runs.run(pipeline)
    spark.sql(change.format(table))
    runs.run(pipeline)
    assert rows_of("out", "id") == [(1,), (2,)]
    assert runs.plan(pipeline).decision is Decision.IDLE


def test_the_first_run_starts_at_a_version(runs, pipeline_of, table, rows_of):
    runs.run(pipeline_of(delta(starting_version=2)))
    assert rows_of("out", "id") == [(2,)]


def test_a_starting_version_that_is_not_there_yet_is_idle(runs, pipeline_of, table):
    plan = runs.plan(pipeline_of(delta(starting_version=3)))
    assert plan.decision is Decision.IDLE
    assert "starting_version 3 is not there yet; newest is 2" in plan.reason


def test_the_first_run_starts_at_a_moment(runs, pipeline_of, table, settings, rows_of):
    committed = DeltaLog(settings.locate("in")).read_commit(2).timestamp_ms
    moment = datetime.fromtimestamp(committed / 1000, UTC)
    runs.run(pipeline_of(delta(starting_timestamp=moment)))
    assert rows_of("out", "id") == [(2,)]


def test_a_moment_that_has_not_come_is_idle(runs, pipeline_of, table):
    pipeline = pipeline_of(delta(starting_timestamp="2099-01-01T00:00:00Z"))
    assert runs.plan(pipeline).decision is Decision.IDLE


def test_changes_are_streamed_as_changes(runs, pipeline_of, spark, table, rows_of):
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 1")
    runs.run(pipeline_of(delta(starting_version=1, change_data_feed=True)))
    expected = [(1, "delete"), (1, "insert"), (2, "insert")]
    assert rows_of("out", "id", "_change_type") == expected


def test_a_deleted_row_fails_the_stream_unless_change_commits_are_skipped(
    runs, pipeline_of, spark, table, rows_of
):
    strict, lenient = pipeline_of(delta()), pipeline_of(delta(skip_change_commits=True))
    runs.run(strict)
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 1")
    with pytest.raises(Exception, match="DELTA_SOURCE"):
        runs.run(strict)
    runs.run(lenient)
    assert rows_of("out", "id") == [(1,), (2,)]


def test_a_table_created_anew_is_blocked_in_words(runs, pipeline_of, spark, table, settings):
    import shutil

    pipeline = pipeline_of(delta())
    runs.run(pipeline)
    shutil.rmtree(str(settings.locate("in")))
    spark.sql(f"CREATE TABLE delta.`{table}` (id long) USING delta")
    plan = runs.plan(pipeline)
    assert plan.decision is Decision.BLOCKED
    assert "deleted and created anew" in plan.reason


def test_a_rate_source_gives_the_same_number_each_run(runs, pipeline_of, rows_of):
    pipeline = pipeline_of({"type": "rate", "rows_per_batch": 7})
    runs.run(pipeline)
    runs.run(pipeline)
    assert rows_of("out", "value") == [(value,) for value in range(14)]


def test_any_format_of_spark_s_is_read_up_to_the_end_that_the_job_finds(
    runs, pipeline_of, landing, rows_of, settings, monkeypatch
):
    monkeypatch.setenv("TIDEGATE_CONN_HIDDEN", '{"maxFilesPerTrigger": 1}')
    pipeline = pipeline_of(
        {
            "type": "spark",
            "format": "json",
            "schema": "id long",
            "connection": "hidden",
            "options": {"path": settings.locate_url("landing")},
        }
    )
    assert pipeline.connections == ("hidden",)
    assert runs.run(pipeline).batches == ()  # nothing there, and the job says so
    for number in range(3):
        (landing / f"{number}.json").write_text(f'{{"id": {number}}}')
    assert len(runs.run(pipeline).batches) == 3
    assert rows_of("out", "id") == [(0,), (1,), (2,)]
    again = runs.run(pipeline)
    assert (again.plan.decision, again.batches) == (Decision.RUN, ())


def test_a_format_that_spark_does_not_have_is_told(runs, pipeline_of):
    pipeline = pipeline_of({"type": "spark", "format": "aws-kinesis"})
    with pytest.raises(SourceError, match=r"cannot open the spark source.*aws-kinesis"):
        runs.run(pipeline)
