"""The Delta sink: laid out as asked, each batch once."""

import pytest

from tidegate.core.checkpoint.log import read_query_id
from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import SinkError
from tidegate.core.ledger import Decision

RATE = {"type": "rate", "rows_per_batch": 4}


def describe(spark, settings) -> dict:
    location = settings.locate_url("out")
    return spark.sql(f"DESCRIBE DETAIL delta.`{location}`").first().asDict()


@pytest.mark.parametrize(
    ("sink", "detail"),
    [
        ({"partition_by": ["value"]}, ("partitionColumns", ["value"])),
        ({"cluster_by": ["value"]}, ("clusteringColumns", ["value"])),
        ({}, ("partitionColumns", [])),
    ],
)
def test_a_missing_table_is_created_as_laid_out(
    runs, spark, settings, pipeline_of, rows_of, sink, detail
):
    runs.run(pipeline_of(RATE, sink=sink))
    key, expected = detail
    assert list(describe(spark, settings)[key]) == expected
    assert rows_of("out", "value") == [(0,), (1,), (2,), (3,)]


def test_the_transaction_pair_is_in_the_commit_that_holds_the_rows(runs, pipeline_of, settings):
    runs.run(pipeline_of(RATE))
    run = runs.run(pipeline_of(RATE))
    query_id = read_query_id(settings.checkpoint_of("p"))
    log = DeltaLog(settings.locate("out"))
    version = run.summary.versions["main"]
    assert log.read_commit(version).transactions == {f"{query_id}:main": 1}
    assert log.find_transaction(version, f"{query_id}:main") == 1
    assert log.read_commit(version).rows == 4


def test_another_writer_between_batches_does_not_confuse_the_record(
    runs, spark, pipeline_of, settings
):
    runs.run(pipeline_of(RATE))
    location = settings.locate_url("out")
    spark.sql(f"INSERT INTO delta.`{location}` VALUES (current_timestamp(), 99)")
    run = runs.run(pipeline_of(RATE))
    assert run.summary.output_rows == 4


def test_a_layout_by_a_column_that_is_not_there_is_refused(runs, pipeline_of, settings):
    with pytest.raises(SinkError, match=r"laid out by day.*Choose out of timestamp, value"):
        runs.run(pipeline_of(RATE, sink={"partition_by": ["day"]}))
    assert not settings.locate("out").exists()


def test_a_deleted_checkpoint_is_blocked_rather_than_doubling_rows(
    runs, pipeline_of, settings, rows_of
):
    import shutil

    runs.run(pipeline_of(RATE))
    shutil.rmtree(str(settings.checkpoint_of("p")))
    plan = runs.plan(pipeline_of(RATE))
    assert plan.decision is Decision.BLOCKED
    assert "rows would be written twice" in plan.reason
    assert rows_of("out", "value") == [(value,) for value in range(4)]


def test_a_deleted_table_is_blocked_rather_than_started_anew(runs, pipeline_of, settings):
    import shutil

    runs.run(pipeline_of(RATE))
    shutil.rmtree(str(settings.locate("out")))
    plan = runs.plan(pipeline_of(RATE))
    assert plan.decision is Decision.BLOCKED
    assert "holds no batch of this query" in plan.reason


def test_a_query_that_spark_refuses_leaves_no_table(runs, pipeline_of, settings):
    sql = "SELECT value % 2 AS k, count(*) AS n FROM input GROUP BY value % 2"
    with pytest.raises(Exception, match="without watermark"):
        runs.run(pipeline_of(RATE, transform={"sql": sql}))
    assert not settings.locate("out").exists()
    runs.run(pipeline_of(RATE, name="q"))
    assert settings.locate("out").exists()


def test_a_first_batch_that_fails_leaves_no_table(runs, pipeline_of, settings):
    pipeline = pipeline_of(
        RATE, transform={"sql": "SELECT int(raise_error('too large')) x FROM input"}
    )
    with pytest.raises(Exception, match="too large"):
        runs.run(pipeline)
    assert DeltaLog(settings.locate("out")).find_version() is None


def test_columns_that_the_table_does_not_have_are_told_before_anything_is_written(
    runs, pipeline_of, rows_of
):
    runs.run(pipeline_of(RATE))
    wider = pipeline_of(RATE, transform={"sql": "SELECT *, 1 AS a, 'x' AS b FROM input"})
    with pytest.raises(
        SinkError, match=r"has no column for a int, b string\. It has timestamp, va"
    ):
        runs.run(wider)
    assert len(rows_of("out")) == 4


def test_a_column_of_another_type_is_told_with_the_way_on(runs, pipeline_of):
    runs.run(pipeline_of(RATE))
    with pytest.raises(
        SinkError, match=r"(?s)has value of a type that cannot hold.*array<int>.*Cast it"
    ):
        runs.run(
            pipeline_of(RATE, transform={"sql": "SELECT timestamp, array(1) value FROM input"})
        )
