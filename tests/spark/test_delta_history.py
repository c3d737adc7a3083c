"""Every version of each key: late rows, deletes, what is tracked, replays."""

import shutil
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.spark.delta_bench import QUERY, Bench, open_small_session
from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import SinkError
from tidegate.core.spec.sinks.delta import SchemaChange
from tidegate.spark.sinks.delta import DeltaHistory

SCHEMA = "id long, seq long, v string, w string, gone boolean"
SINK = {
    "mode": "scd2",
    "keys": ["id"],
    "sequence": ["seq"],
    "delete_when": "gone",
    "columns": ["id", "seq", "v", "w"],
}
SHOWN = ("id", "v", "w", "valid_from", "valid_to", "is_current")
DELETED, ROWS = "_tidegate_deleted", "_tidegate_rows"


@pytest.fixture(scope="module")
def session(spark):
    return open_small_session(spark)


@pytest.fixture
def open_bench(session, settings):
    """Open a table that keeps versions, with whatever else matters."""

    def build(schema=SCHEMA, options=None, **sink) -> Bench:
        return Bench(session, settings, DeltaHistory, schema, SINK | sink, options or {})

    return build


@pytest.fixture
def bench(open_bench):
    return open_bench()


def row(key, seq, v, w="-"):
    return (key, seq, v, w, False)


def delete(key, seq):
    return (key, seq, None, None, True)


def read(bench):
    """Read the versions of all keys, without what is the same in all of them."""
    return bench.read("id", "v", "valid_from", "valid_to", "is_current")


def test_a_newer_row_closes_the_version_before_it(bench):
    bench.write(row(1, 10, "a"), row(2, 10, "x"))
    record = bench.write(row(1, 20, "b"))
    assert bench.read() == [
        (1, 10, "a", "-", 10, 20, False),
        (1, 20, "b", "-", 20, None, True),
        (2, 10, "x", "-", 10, None, True),
    ]
    assert (record.rows, record.version, record.is_replay) == (2, 1, False)
    assert bench.log.read_commit(1).transactions == {"query:main": 1}


def test_the_versions_of_one_batch_follow_each_other(bench):
    record = bench.write(row(1, 30, "c"), row(1, 10, "a"), row(1, 20, "b"))
    assert read(bench) == [
        (1, "a", 10, 20, False),
        (1, "b", 20, 30, False),
        (1, "c", 30, None, True),
    ]
    assert (record.rows, record.version) == (3, 0)


def test_a_late_row_is_placed_where_it_belongs(bench):
    bench.write(row(1, 10, "a"), row(1, 30, "c"))
    record = bench.write(row(1, 20, "b"), row(1, 5, "first"))
    assert read(bench) == [
        (1, "a", 10, 20, False),
        (1, "b", 20, 30, False),
        (1, "c", 30, None, True),
        (1, "first", 5, 10, False),
    ]
    assert record.rows == 3


def test_a_duplicate_changes_nothing(bench):
    bench.write(row(1, 10, "a"), row(1, 20, "b"), delete(1, 30))
    before = read(bench)
    assert bench.write(row(1, 10, "a"), row(1, 20, "b"), delete(1, 30)).rows == 0
    assert read(bench) == before


def test_rows_of_one_sequence_are_told_apart_by_content_whichever_comes_first(open_bench):
    both = [row(1, 10, "a"), row(1, 10, "b")]
    for number, order in enumerate((both, both[::-1])):
        bench = open_bench(table=f"out{number}")
        for each in order:
            bench.write(each)
        assert read(bench) == [(1, "b", 10, None, True)]


def test_a_delete_closes_the_open_version(bench):
    bench.write(row(1, 10, "a"))
    record = bench.write(delete(1, 20))
    assert read(bench) == [(1, "a", 10, 20, False)]
    assert record.rows == 1


def test_a_row_after_a_delete_opens_a_version_of_its_own(bench):
    bench.write(row(1, 10, "a"), delete(1, 20))
    bench.write(row(1, 30, "b"))
    assert read(bench) == [(1, "a", 10, 20, False), (1, "b", 30, None, True)]


def test_a_late_row_before_a_delete_does_not_open_its_key_again(bench):
    bench.write(delete(1, 20))
    assert read(bench) == []
    bench.reopen()
    bench.write(row(1, 10, "a"))
    bench.write(row(1, 15, "b"))
    assert read(bench) == [(1, "a", 10, 15, False), (1, "b", 15, 20, False)]


def test_a_late_delete_cuts_a_version_short(bench):
    bench.write(row(1, 10, "a"), row(1, 30, "b"))
    bench.write(delete(1, 20))
    assert read(bench) == [(1, "a", 10, 20, False), (1, "b", 30, None, True)]


@pytest.mark.parametrize("is_delete_first", [True, False])
def test_a_delete_counts_more_than_a_row_of_its_sequence(bench, is_delete_first):
    bench.write(row(1, 5, "a"))
    both = [row(1, 10, "b"), delete(1, 10)]
    for each in both[::-1] if is_delete_first else both:
        bench.write(each)
    assert read(bench) == [(1, "a", 5, 10, False)]


def test_only_what_is_tracked_opens_a_version(open_bench):
    bench = open_bench(track=["v"])
    bench.write(row(1, 10, "a", "old"))
    bench.write(row(1, 20, "a", "new"))
    bench.write(row(1, 30, "b", "x"))
    assert bench.read(*SHOWN) == [
        (1, "a", "new", 10, 30, False),
        (1, "b", "x", 30, None, True),
    ]


def test_a_late_row_splits_a_version_of_which_not_all_is_tracked(open_bench):
    bench = open_bench(track=["v"])
    bench.write(row(1, 10, "a", "1"), row(1, 20, "a", "2"), row(1, 40, "a", "4"))
    assert bench.read(*SHOWN) == [(1, "a", "4", 10, None, True)]
    bench.write(row(1, 30, "b", "3"))
    assert bench.read(*SHOWN) == [
        (1, "a", "2", 10, 30, False),
        (1, "a", "4", 40, None, True),
        (1, "b", "3", 30, 40, False),
    ]


def test_a_delete_parts_versions_that_are_the_same_in_what_is_tracked(open_bench):
    bench = open_bench(track=["v"])
    bench.write(row(1, 10, "a"), delete(1, 20), row(1, 30, "a"))
    assert read(bench) == [(1, "a", 10, 20, False), (1, "a", 30, None, True)]


def test_valid_from_is_the_first_of_several_sequence_columns(open_bench):
    bench = open_bench(
        "id long, at timestamp, n long, v string",
        sequence=["at", "n"],
        delete_when=None,
        columns=[],
        valid_from="since",
        valid_to="until",
        current="now",
    )
    noon, one = datetime(2026, 1, 1, 12), datetime(2026, 1, 1, 13)  # noqa: DTZ001
    bench.write((1, noon, 1, "a"), (1, one, 1, "c"))
    bench.write((1, noon, 2, "b"))
    assert bench.read("v", "since", "until", "now") == [
        ("a", noon, noon, False),
        ("b", noon, one, False),
        ("c", one, None, True),
    ]


def test_a_batch_that_is_written_again_changes_nothing(bench):
    bench.write(row(1, 10, "a"))
    batch = (row(1, 20, "b"), delete(2, 5))
    first = bench.write(*batch, batch_id=1)
    before = read(bench)
    bench.reopen()
    again = bench.write(*batch, batch_id=1)
    assert read(bench) == before
    assert (again.is_replay, again.rows, again.version) == (True, first.rows, first.version)
    assert bench.log.find_version() == 1
    assert bench.read(table=f"out/{DELETED}") == [(2, 5)]


@pytest.mark.parametrize("track", [[], ["v"]])
def test_a_batch_that_died_before_its_versions_were_written_is_finished(
    open_bench, monkeypatch, track
):
    bench = open_bench(track=track)
    bench.write(row(1, 10, "a"), row(2, 10, "x"))
    batch = (row(1, 20, "b"), delete(2, 30))
    with monkeypatch.context() as patch:
        patch.setattr(DeltaHistory, "_merge", _die)
        with pytest.raises(SinkError, match="machine went away"):
            bench.write(*batch, batch_id=1)
    bench.reopen()
    record = bench.write(*batch, batch_id=1)
    assert read(bench) == [
        (1, "a", 10, 20, False),
        (1, "b", 20, None, True),
        (2, "x", 10, 30, False),
    ]
    assert (record.is_replay, record.rows) == (False, 3)


@pytest.mark.parametrize("track", [[], ["v"]])
@pytest.mark.parametrize("layout", [{}, {"cluster_by": ["id"]}])
def test_a_first_batch_that_died_is_finished(open_bench, monkeypatch, settings, track, layout):
    bench = open_bench(track=track, **layout)
    with monkeypatch.context() as patch:
        patch.setattr(DeltaHistory, "_remember" if layout else "_save", _die)
        with pytest.raises(SinkError, match="machine went away"):
            bench.write(row(1, 10, "a"), delete(1, 20))
    assert DeltaLog(settings.locate("out")).find_version() == (0 if layout else None)
    bench.reopen()
    bench.prepare()
    bench.write(row(1, 10, "a"), delete(1, 20), batch_id=0)
    assert read(bench) == [(1, "a", 10, 20, False)]


def _die(*_, **__):
    raise SinkError("The machine went away.")


def test_an_empty_batch_is_recorded_too(bench):
    bench.write()
    assert bench.write().rows == 0
    assert bench.log.find_transaction(bench.log.require_version(), "query:main") == 1


def test_only_what_changed_is_merged(open_bench):
    bench = open_bench("id long, seq long, f float, d decimal(10,2)", delete_when=None, columns=[])
    bench.write((1, 1, 0.1, Decimal("1.50")), (1, 2, 0.2, Decimal("2.50")))
    wider = "id long, seq int, f double, d decimal(12,4)"
    record = bench.write((1, 3, 0.5, Decimal("3.5000")), schema=wider)
    assert record.rows == 2
    assert bench.read("seq", "d", "valid_to") == [
        (1, Decimal("1.50"), 2),
        (2, Decimal("2.50"), 3),
        (3, Decimal("3.50"), None),
    ]


def test_new_columns_are_added_where_the_table_evolves(open_bench):
    for track in ([], ["v"]):
        bench = open_bench(
            options={"policy": SchemaChange.EVOLVE},
            columns=[],
            table=f"out{len(track)}",
            track=track,
        )
        bench.write(row(1, 10, "a"))
        wider = f"{SCHEMA}, more string"
        bench.prepare(wider)
        bench.write((*row(1, 20, "b"), "x"), schema=wider)
        assert bench.read("v", "valid_to", "more") == [("a", 20, None), ("b", None, "x")]
        assert bench.reopen().read_schema(bench.session).names[-1] == "more"


@pytest.mark.parametrize(
    ("layout", "detail"),
    [
        ({"partition_by": ["is_current"]}, ("partitionColumns", ["is_current"])),
        ({"cluster_by": ["id", "valid_from"]}, ("clusteringColumns", ["id", "valid_from"])),
    ],
)
def test_a_missing_table_is_created_as_laid_out(open_bench, layout, detail):
    bench = open_bench(**layout)
    bench.prepare()
    bench.write(row(1, 10, "a"), delete(2, 10))
    bench.write(row(1, 20, "b"))
    assert list(bench.describe()[detail[0]]) == detail[1]
    assert read(bench) == [(1, "a", 10, 20, False), (1, "b", 20, None, True)]


def test_it_works_on_the_batches_of_a_query(bench, session, tmp_path):
    source = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 2).load()
    rows = source.selectExpr(
        "value % 2 AS id", "value AS seq", "string(value) AS v", "'' AS w", "value = 3 AS gone"
    )
    writer = bench.reopen()
    for _ in range(2):
        query = rows.writeStream.foreachBatch(
            lambda batch, batch_id: writer.write(batch, batch_id, QUERY)
        ).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()
    assert read(bench) == [(0, "0", 0, 2, False), (0, "2", 2, None, True), (1, "1", 1, 3, False)]


def test_all_mistakes_are_told_at_once(open_bench):
    bench = open_bench(
        "id long, m map<string,int>, VALID_TO long",
        keys=["nokey"],
        sequence=["m"],
        track=["notrack"],
        delete_when="nothing",
        columns=[],
        partition_by=["is_current", "d"],
    )
    with pytest.raises(SinkError) as raised:
        bench.prepare()
    told = str(raised.value)
    assert "for 6 reasons" in told
    assert "laid out by d, which" in told
    assert "knows rows by nokey, which" in told
    assert "tracks notrack, which" in told
    assert "cannot compare its rows by m. Spark puts no order into map<string,int>." in told
    assert "delete_when of the sink out is no condition" in told
    assert "have VALID_TO, which their history is to add. Rename it" in told


def test_a_table_of_another_mode_is_refused(open_bench, session, settings):
    rows = session.createDataFrame([(1, 1, "a", "b")], "id long, seq long, v string, w string")
    rows.write.format("delta").save(settings.locate_url("out"))
    with pytest.raises(
        SinkError, match=r"has no valid_from, valid_to, is_current, which mode scd2 needs\. "
    ):
        open_bench().prepare()


def test_what_is_tracked_may_change_but_not_whether_anything_is(open_bench):
    bench = open_bench(track=["v"])
    bench.write(row(1, 10, "a"))
    bench.reopen(track=["v", "w"])
    bench.prepare()
    bench.reopen(track=[])
    with pytest.raises(SinkError, match="was begun with track, and cannot go on without it"):
        bench.prepare()
    bench = open_bench(table="other")
    bench.write(row(1, 10, "a"))
    bench.prepare()
    bench.reopen(track=["v"])
    with pytest.raises(SinkError, match="was begun without track, and cannot go on with it"):
        bench.prepare()


def list_versions(records, tracked):
    """List the versions that follow from all records of all keys, in plain Python."""
    versions = []
    for key, group in groupby(sorted(records, key=lambda r: r[0]), key=lambda r: r[0]):
        best = {}
        for _, seq, v, w, is_delete in group:
            rank = (is_delete, v or "", w or "")
            best[seq] = max(best.get(seq, rank), rank)
        open_one, previous = None, None
        for seq, (is_delete, v, w) in sorted(best.items()):
            if open_one and not is_delete and tracked and v == previous:
                open_one[1:4] = [seq, v, w]
                continue
            if open_one:
                open_one[5:] = [seq, False]
                versions.append(tuple(open_one))
            open_one = None if is_delete else [key, seq, v, w, seq, None, True]
            previous = v
        versions += [tuple(open_one)] if open_one else []
    return sorted(versions, key=lambda version: [str(value) for value in version])


@pytest.mark.parametrize("track", [(), ("v",)])
def test_what_a_backfill_brings_takes_the_place_of_what_is_as_new(
    open_bench, session, settings, track
):
    bench = open_bench(track=list(track))
    bench.write(row(1, 1, "x"), row(1, 3, "y"), row(2, 1, "x"), delete(2, 2))
    expected = bench.read()
    table = f"delta.`{settings.locate_url(bench.table)}`"
    session.sql(f"UPDATE {table} SET v = 'zzz' WHERE seq = 1")
    session.sql(f"DELETE FROM {table} WHERE seq = 3")
    bench.reopen().heals = True
    bench.write(row(1, 1, "x"), row(1, 3, "y"), row(2, 1, "x"), row(2, 2, "late"))
    assert bench.read() == expected  # a delete counts more than a row of its sequence


records = st.builds(
    lambda key, seq, v, w, is_delete: (
        key,
        seq,
        *((None, None) if is_delete else (v, w)),
        is_delete,
    ),
    st.integers(0, 7),
    st.integers(10, 18),
    st.sampled_from("ab"),
    st.sampled_from("xyz"),
    st.sampled_from([False, False, False, True]),
)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("track", [[], ["v"]])
@hypothesis_settings(
    max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(st.lists(st.lists(records, max_size=30), min_size=1, max_size=3), st.randoms())
def test_the_history_is_the_same_whatever_order_rows_come_in(
    open_bench, settings, track, batches, random
):
    # The model sees one set of rows: neither their order nor how they were split into batches.
    again = [each for batch in batches for each in batch if random.random() < 0.2]
    bench = open_bench(table=f"t{uuid4().hex}", track=track)
    for batch in (*batches, again):
        bench.write(*random.sample(batch, len(batch)))
    every = [each for batch in batches for each in batch]
    assert bench.read() == list_versions(every, tracked=bool(track))
    shutil.rmtree(str(settings.locate(bench.table)))
