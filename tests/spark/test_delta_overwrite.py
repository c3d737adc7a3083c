"""A table that is written anew with each batch."""

import pytest

from tests.spark.delta_bench import QUERY, Bench, open_small_session
from tidegate.core.errors import SinkError
from tidegate.spark.sinks.delta import DeltaOverwrite

SCHEMA = "k string, n long"


@pytest.fixture(scope="module")
def session(spark):
    return open_small_session(spark)


@pytest.fixture
def open_bench(session, settings):
    """Open a table that is overwritten, with whatever else matters."""

    def build(schema=SCHEMA, **sink) -> Bench:
        return Bench(session, settings, DeltaOverwrite, schema, {"mode": "overwrite"} | sink)

    return build


def test_a_batch_takes_the_place_of_all_rows(open_bench):
    bench = open_bench()
    assert bench.write(("a", 1), ("b", 2)).rows == 2
    record = bench.write(("a", 3))
    assert bench.read() == [("a", 3)]
    assert (record.rows, record.version, record.is_replay) == (1, 1, False)
    assert bench.log.read_commit(1).transactions == {"query:main": 1}


def test_an_empty_batch_leaves_no_rows(open_bench):
    bench = open_bench()
    bench.write(("a", 1))
    assert bench.write().rows == 0
    assert bench.read() == []


def test_a_batch_that_is_written_again_is_passed_over(open_bench):
    bench = open_bench()
    bench.write(("a", 1))
    bench.write(("b", 2))
    bench.reopen()
    again = bench.write(("b", 2), batch_id=1)
    older = bench.write(("a", 1), batch_id=0)
    assert bench.read() == [("b", 2)]
    assert (again.rows, again.version, again.is_replay) == (1, 1, True)
    assert older.is_replay
    assert bench.log.find_version() == 1


def test_the_columns_stay_as_they_are(open_bench):
    bench = open_bench(columns=["N", "k"])
    bench.write(("a", 1))
    bench.reopen(columns=["n"])
    bench.write(("b", 2))
    assert bench.read("k", "n") == [(None, 2)]
    with pytest.raises(SinkError, match=r"has no column for more int\. It has N, k"):
        open_bench().prepare("k string, n long, more int")
    with pytest.raises(SinkError, match="does not take the batch"):
        bench.write(([1],), schema="n array<int>")


@pytest.mark.parametrize(
    ("layout", "detail"),
    [
        ({"partition_by": ["k"]}, ("partitionColumns", ["k"])),
        ({"cluster_by": ["k"]}, ("clusteringColumns", ["k"])),
    ],
)
def test_the_layout_stays_as_it_is(open_bench, session, layout, detail):
    bench = open_bench(**layout)
    bench.write(("a", 1), ("b", 1))
    session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    bench.write(("a", 2))
    session.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert list(bench.describe()[detail[0]]) == detail[1]
    assert bench.read() == [("a", 2)]


def test_a_column_that_is_not_there_is_told(open_bench, settings):
    with pytest.raises(SinkError, match=r"\(1\) The sink out takes x, .*\(2\).*laid out by x"):
        open_bench(columns=["k", "x"], partition_by=["x"]).prepare()
    assert not settings.locate("out").exists()


def test_it_keeps_the_totals_of_a_query_in_complete_mode(open_bench, session, tmp_path):
    bench = open_bench()
    source = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).load()
    totals = source.selectExpr("string(value % 2) AS k").groupBy("k").count()
    writer = bench.reopen()
    for _ in range(2):
        query = totals.writeStream.outputMode("complete").foreachBatch(
            lambda batch, batch_id: writer.write(batch, batch_id, QUERY)
        )
        query = query.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()
    assert bench.read() == [("0", 4), ("1", 4)]
