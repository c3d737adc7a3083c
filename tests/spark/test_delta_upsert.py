"""The newest row of each key: late rows, deletes, replays."""

import shutil
from datetime import date, datetime
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.spark.delta_bench import QUERY, Bench, open_small_session
from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import SinkError
from tidegate.core.spec.sinks.delta import SchemaChange
from tidegate.spark.sinks.delta import DeltaUpsert

SCHEMA = "id long, seq long, v string, gone boolean"
SINK = {
    "mode": "upsert",
    "keys": ["id"],
    "sequence": ["seq"],
    "delete_when": "gone",
    "columns": ["id", "seq", "v"],
}
PLAIN = {"delete_when": None, "columns": []}
TOMBSTONES = "_tidegate_deleted"


@pytest.fixture(scope="module")
def session(spark):
    return open_small_session(spark)


@pytest.fixture
def open_bench(session, settings):
    """Open a table that is kept by upsert, with whatever else matters."""

    def build(schema=SCHEMA, options=None, **sink) -> Bench:
        return Bench(session, settings, DeltaUpsert, schema, SINK | sink, options or {})

    return build


@pytest.fixture
def bench(open_bench):
    return open_bench()


def row(key, seq, v):
    return (key, seq, v, False)


def delete(key, seq):
    return (key, seq, None, True)


def test_the_newest_row_of_a_key_takes_the_place_of_the_older(bench):
    bench.write(row(1, 1, "a"), row(2, 1, "b"))
    record = bench.write(row(1, 2, "a2"), row(3, 1, "c"))
    assert bench.read() == [(1, 2, "a2"), (2, 1, "b"), (3, 1, "c")]
    assert (record.rows, record.version, record.is_replay) == (2, 1, False)


def test_the_first_batch_creates_the_table_with_the_transaction_pair(bench):
    record = bench.write(row(1, 1, "a"), row(1, 2, "b"), row(1, 1, "c"))
    assert bench.read() == [(1, 2, "b")]
    assert (record.rows, record.version, record.is_replay) == (1, 0, False)
    assert bench.log.read_commit(0).transactions == {"query:main": 0}


def test_a_late_row_never_takes_the_place_of_a_newer_one(bench):
    bench.write(row(1, 5, "new"))
    record = bench.write(row(1, 4, "late"))
    assert bench.read() == [(1, 5, "new")]
    assert record.rows == 0


def test_an_equally_new_row_leaves_what_is_there(bench):
    bench.write(row(1, 5, "first"))
    bench.write(row(1, 5, "zzz"))
    assert bench.read() == [(1, 5, "first")]


def test_equally_new_rows_of_a_batch_are_told_apart_by_content(open_bench):
    rows = [row(1, 5, "a"), row(1, 5, "c"), row(1, 5, "b")]
    for number, order in enumerate((rows, rows[::-1])):
        bench = open_bench(table=f"out{number}")
        bench.write(*order)
        assert bench.read() == [(1, 5, "c")]


def test_rows_that_differ_by_a_microsecond_are_told_apart(open_bench):
    times = [datetime(2026, 1, 1, microsecond=n) for n in (1, 2)]  # noqa: DTZ001
    for number, order in enumerate((times, times[::-1])):
        bench = open_bench("id long, seq long, v timestamp", table=f"out{number}", **PLAIN)
        bench.write(*((1, 1, at) for at in order))
        assert bench.read("v") == [(times[1],)]


def test_a_sequence_of_several_columns_counts_one_after_the_other(open_bench):
    bench = open_bench("id long, day date, n int, v string", sequence=["day", "n"], **PLAIN)
    one, two = date(2026, 1, 1), date(2026, 1, 2)
    bench.write((1, one, 9, "a"), (2, two, 1, "b"), (2, two, 2, "c"))
    bench.write((1, two, 1, "newer day"), (2, one, 9, "older day"), (2, two, 1, "older n"))
    assert bench.read("v") == [("c",), ("newer day",)]


def test_keys_of_several_columns_are_one_key(open_bench):
    bench = open_bench("a long, b string, seq long", keys=["a", "B"], **PLAIN)
    bench.write((1, "x", 1), (1, "y", 1))
    bench.write((1, "x", 2))
    assert bench.read() == [(1, "x", 2), (1, "y", 1)]


def test_a_delete_removes_its_key(bench):
    bench.write(row(1, 1, "a"), row(2, 1, "b"))
    record = bench.write(delete(1, 2))
    assert bench.read() == [(2, 1, "b")]
    assert record.rows == 1
    assert bench.read(table=f"out/{TOMBSTONES}") == [(1, 2)]


def test_a_late_row_does_not_bring_a_deleted_key_back(bench):
    bench.write(row(1, 1, "a"))
    bench.write(delete(1, 5))
    bench.reopen()
    bench.write(row(1, 4, "late"), row(1, 5, "equal"), row(2, 1, "other"))
    assert bench.read() == [(2, 1, "other")]


def test_a_newer_row_than_the_delete_comes_back(bench):
    bench.write(delete(1, 5))
    bench.write(row(1, 6, "back"))
    bench.write(row(1, 4, "late"))
    assert bench.read() == [(1, 6, "back")]


def test_a_late_delete_leaves_a_newer_row(bench):
    bench.write(row(1, 5, "a"))
    bench.write(delete(1, 4))
    assert bench.read() == [(1, 5, "a")]


@pytest.mark.parametrize("is_delete_first", [True, False])
def test_a_delete_counts_more_than_an_equally_new_row(bench, is_delete_first):
    both = [row(1, 5, "a"), delete(1, 5)]
    for each in both[::-1] if is_delete_first else both:
        bench.write(each)
    bench.write(row(2, 5, "b"), delete(2, 5))
    assert bench.read() == []


def test_a_condition_that_is_null_is_no_delete(bench):
    bench.write((1, 1, "a", None))
    assert bench.read() == [(1, 1, "a")]


def test_without_deletes_there_are_no_tombstones(bench, settings):
    bench.write(row(1, 1, "a"))
    bench.write(row(1, 2, "a"))
    assert not settings.locate(f"out/{TOMBSTONES}").exists()


def test_a_batch_that_is_written_again_changes_nothing(bench):
    bench.write(row(1, 1, "a"), row(2, 1, "b"))
    batch = (row(1, 2, "a2"), delete(2, 3))
    first = bench.write(*batch, batch_id=1)
    bench.reopen()
    again = bench.write(*batch, batch_id=1)
    assert bench.read() == [(1, 2, "a2")]
    assert (again.is_replay, again.rows, again.version) == (True, first.rows, first.version)
    assert bench.log.find_version() == 1
    assert bench.read(table=f"out/{TOMBSTONES}") == [(2, 3)]


def test_a_batch_that_died_between_its_deletes_and_its_rows_is_finished(bench, monkeypatch):
    bench.write(row(1, 1, "a"), row(2, 1, "b"))
    batch = (row(1, 2, "a2"), delete(2, 3), row(3, 1, "c"))
    with monkeypatch.context() as patch:
        patch.setattr(DeltaUpsert, "_merge", _die)
        with pytest.raises(SinkError, match="machine went away"):
            bench.write(*batch, batch_id=1)
    assert bench.read(table=f"out/{TOMBSTONES}") == [(2, 3)]
    bench.reopen()
    record = bench.write(*batch, batch_id=1)
    assert bench.read() == [(1, 2, "a2"), (3, 1, "c")]
    assert (record.is_replay, record.rows) == (False, 3)
    assert bench.read(table=f"out/{TOMBSTONES}") == [(2, 3)]


def test_a_first_batch_that_died_after_its_deletes_is_finished(bench, monkeypatch, settings):
    with monkeypatch.context() as patch:
        patch.setattr(DeltaUpsert, "_save", _die)
        with pytest.raises(SinkError, match="machine went away"):
            bench.write(row(1, 1, "a"), delete(2, 3))
    assert DeltaLog(settings.locate("out")).find_version() is None
    bench.reopen()
    bench.write(row(1, 1, "a"), delete(2, 3), batch_id=0)
    assert bench.read() == [(1, 1, "a")]


def _die(*_, **__):
    raise SinkError("The machine went away.")


def test_the_transaction_does_not_stay_in_the_session(bench, session):
    bench.write(row(1, 1, "a"))
    bench.write(row(1, 2, "b"))
    for key in ("txnAppId", "txnVersion"):
        assert session.conf.get(f"spark.databricks.delta.write.{key}", None) is None


def test_an_empty_batch_is_recorded_too(bench):
    assert bench.write().rows == 0
    assert bench.write().rows == 0
    assert bench.log.find_transaction(bench.log.require_version(), "query:main") == 1
    assert bench.read() == []


def test_what_a_batch_does_not_name_stays_as_it_was(open_bench):
    bench = open_bench("id long, seq long, v string, w string", **PLAIN)
    bench.write((1, 1, "a", "kept"))
    bench.reopen(columns=["id", "seq", "v"])
    bench.write((1, 2, "b", "not written"), (2, 1, "c", "not written"))
    assert bench.read() == [(1, 2, "b", "kept"), (2, 1, "c", None)]


def test_new_columns_are_added_where_the_table_evolves(open_bench):
    bench = open_bench(options={"policy": SchemaChange.EVOLVE}, **PLAIN)
    bench.write(row(1, 1, "a"))
    wider = f"{SCHEMA}, more string"
    bench.prepare(wider)
    bench.write((*row(1, 2, "b"), "x"), (*row(2, 1, "c"), "y"), schema=wider)
    assert bench.read("id", "v", "more") == [(1, "b", "x"), (2, "c", "y")]


def test_types_that_the_table_has_wider_are_taken(open_bench):
    bench = open_bench()
    bench.write(row(1, 1, "a"))
    bench.write(row(1, 2, "b"), schema="id int, seq int, v string, gone boolean")
    assert bench.read() == [(1, 2, "b")]


@pytest.mark.parametrize(
    ("layout", "detail"),
    [
        ({"partition_by": ["v"]}, ("partitionColumns", ["v"])),
        ({"cluster_by": ["id"]}, ("clusteringColumns", ["id"])),
    ],
)
def test_a_missing_table_is_created_as_laid_out(open_bench, layout, detail):
    bench = open_bench(**layout)
    bench.write(row(1, 1, "a"), delete(2, 1))
    bench.write(row(1, 2, "b"))
    assert list(bench.describe()[detail[0]]) == detail[1]
    assert bench.read() == [(1, 2, "b")]


def test_vacuum_leaves_the_tombstones(bench, session, settings):
    bench.write(row(1, 1, "a"))
    bench.write(delete(1, 5))
    conf = {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    }
    for key, value in conf.items():
        session.conf.set(key, value)
    session.sql(f"VACUUM delta.`{settings.locate_url('out')}` RETAIN 0 HOURS")
    for key in conf:
        session.conf.unset(key)
    bench.write(row(1, 4, "late"))
    assert bench.read() == []


def test_tombstones_are_few_files_however_many_batches(bench, session, settings):
    session.conf.set("spark.databricks.delta.autoCompact.minNumFiles", "3")
    for seq in range(4):
        bench.write(delete(1, seq))
    session.conf.unset("spark.databricks.delta.autoCompact.minNumFiles")
    location = settings.locate_url(f"out/{TOMBSTONES}")
    detail = session.sql(f"DESCRIBE DETAIL delta.`{location}`").first()
    assert detail.numFiles < 4
    assert bench.read(table=f"out/{TOMBSTONES}") == [(1, 0), (1, 1), (1, 2), (1, 3)]


def test_it_works_on_the_batches_of_a_query(bench, session, tmp_path):
    source = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).load()
    rows = source.selectExpr(
        "value % 2 AS id", "value AS seq", "string(value) AS v", "value % 4 = 3 AS gone"
    )
    writer = bench.reopen()
    records = []
    for _ in range(2):
        query = rows.writeStream.foreachBatch(
            lambda batch, batch_id: records.append(writer.write(batch, batch_id, QUERY))
        ).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()
    assert bench.read() == [(0, 6, "6")]
    assert [record.rows for record in records] == [1, 1]


def test_all_mistakes_are_told_at_once(open_bench, settings):
    bench = open_bench(
        keys=["id", "nokey"],
        sequence=["noseq"],
        delete_when="gone AND nothing",
        partition_by=["d"],
        columns=[],
    )
    with pytest.raises(SinkError) as raised:
        bench.prepare()
    told = str(raised.value)
    assert told.startswith("The sink out cannot take its rows, for 4 reasons: (1) The sink out is")
    assert "laid out by d, which its rows do not have. Choose out of id, seq, v, gone." in told
    assert "knows rows by nokey, which" in told
    assert "orders rows by noseq, which" in told
    assert "delete_when of the sink out is no condition on its rows: [UNRESOLVED_COLUMN" in told
    assert not settings.locate("out").exists()


@pytest.mark.parametrize("condition", ["id", "gone =", "count(*) > 1", "raise_error('x')"])
def test_what_is_no_condition_is_refused(open_bench, condition):
    with pytest.raises(SinkError, match=r"delete_when of the sink out is no condition.*Correct"):
        open_bench(delete_when=condition).prepare()


def test_a_key_that_cannot_be_compared_is_refused(open_bench):
    bench = open_bench("id map<string,int>, seq array<variant>, v int", delete_when=None)
    with pytest.raises(SinkError, match=r"\(1\).* by id\. .*map<string,int>.*\(2\).* by seq\."):
        bench.prepare()


def test_a_table_without_the_keys_is_refused(open_bench):
    open_bench(columns=["seq", "v"], keys=["seq"]).write(row(1, 1, "a"))
    with pytest.raises(SinkError, match=r"has no id, which mode upsert needs\. .*has seq, v\."):
        open_bench().prepare()


def test_a_table_that_keeps_versions_is_refused(open_bench):
    schema = "id long, seq long, valid_from long, valid_to long, is_current boolean"
    open_bench(schema, **PLAIN).write((1, 1, 1, None, True))
    with pytest.raises(SinkError, match=r"has valid_from, valid_to, is_current.*as mode scd2 does"):
        open_bench("id long, seq long", **PLAIN).prepare()


def test_keys_that_deletes_are_not_remembered_by_are_refused(open_bench):
    bench = open_bench()
    bench.write(row(1, 1, "a"), delete(2, 1))
    bench.reopen(keys=["ID"])
    bench.prepare()
    bench.reopen(keys=["id", "v"])
    with pytest.raises(SinkError, match=r"by id, v, seq, and remembers deletes by id, seq\. .*ba"):
        bench.prepare()


def test_columns_that_the_table_does_not_have_are_told(open_bench):
    open_bench().write(row(1, 1, "a"))
    with pytest.raises(SinkError, match=r"has no column for gone boolean\. It has id, seq, v"):
        open_bench(columns=[]).prepare()


def test_rows_that_fit_are_taken(open_bench):
    open_bench().prepare()
    open_bench().write(row(1, 1, "a"))
    open_bench().prepare()


def keep_upserts(batches):
    """Say what a table must have after some batches, in plain Python."""
    held, gone = {}, {}
    for batch in batches:
        newest = {}
        for key, seq, v, is_delete in batch:
            rank = (seq, is_delete, v or "")
            newest[key] = max(newest.get(key, rank), rank)
        for key, (seq, is_delete, v) in newest.items():
            if is_delete:
                gone[key] = max(gone.get(key, seq), seq)
                if key in held and held[key][0] <= seq:
                    del held[key]
            elif seq > gone.get(key, -1) and seq > held.get(key, (-1,))[0]:
                held[key] = (seq, v)
    return sorted((key, seq, v) for key, (seq, v) in held.items())


records = st.builds(
    lambda key, seq, v, is_delete: (key, seq, None if is_delete else v, is_delete),
    st.integers(0, 7),
    st.integers(0, 5),
    st.sampled_from("abc"),
    st.sampled_from([False, False, True]),
)


@pytest.mark.timeout(900)
@hypothesis_settings(
    max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(st.lists(st.lists(records, max_size=30), min_size=2, max_size=4))
def test_any_batches_leave_what_the_rules_say(open_bench, settings, batches):
    bench = open_bench(table=f"t{uuid4().hex}")
    for batch in batches:
        bench.write(*batch)
    assert bench.read() == keep_upserts(batches)
    shutil.rmtree(str(settings.locate(bench.table)))
