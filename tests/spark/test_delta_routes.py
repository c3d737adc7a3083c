"""One table for each value of a column; and the columns that are written."""

import pytest

from tests.spark.delta_bench import Bench, open_small_session
from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import SinkError
from tidegate.core.spec.sinks.delta import SchemaChange
from tidegate.spark.sinks.delta import DeltaAppend, DeltaRoutes

SCHEMA = "id long, country string, v string"


@pytest.fixture(scope="module")
def session(spark):
    return open_small_session(spark)


@pytest.fixture
def open_bench(session, settings):
    """Open tables that are routed by country, with whatever else matters."""

    def build(schema=SCHEMA, kind=DeltaRoutes, options=None, **sink) -> Bench:
        route = {"route_by": "country"} if kind is DeltaRoutes else {}
        return Bench(session, settings, kind, schema, route | sink, options or {})

    return build


def test_each_row_goes_to_the_table_of_its_value(open_bench):
    bench = open_bench()
    record = bench.write((1, "de", "a"), (2, "fr", "b"), (3, "de", "c"))
    assert bench.read(table="out/de") == [(1, "a"), (3, "c")]
    assert bench.read(table="out/fr") == [(2, "b")]
    assert (record.rows, record.version, record.is_replay) == (3, None, False)
    assert bench.log.find_version() is None


def test_each_table_has_a_transaction_of_its_own(open_bench, settings):
    bench = open_bench()
    bench.write((1, "de", "a"), (2, "fr", "b"))
    bench.write((3, "de", "c"))
    log = DeltaLog(settings.locate("out/de"))
    assert [log.read_commit(n).transactions for n in (0, 1)] == [
        {"query:main:de": 0},
        {"query:main:de": 1},
    ]
    assert DeltaLog(settings.locate("out/fr")).find_version() == 0


def test_a_batch_that_died_halfway_is_finished(open_bench, monkeypatch):
    bench = open_bench()
    batch = [(1, "de", "a"), (2, "fr", "b")]
    save = DeltaAppend._save

    def save_one(self, rows, transaction):
        if self.table == "out/fr":
            raise SinkError("The machine went away.")
        save(self, rows, transaction)

    with monkeypatch.context() as patch:
        patch.setattr(DeltaAppend, "_save", save_one)
        with pytest.raises(SinkError, match="went away"):
            bench.write(*batch)
    bench.reopen()
    record = bench.write(*batch, batch_id=0)
    assert (record.rows, record.is_replay) == (2, False)
    bench.reopen()
    again = bench.write(*batch, batch_id=0)
    assert (again.rows, again.is_replay) == (2, True)
    assert bench.read(table="out/de") == [(1, "a")]
    assert bench.read(table="out/fr") == [(2, "b")]


def test_an_empty_batch_makes_no_table(open_bench, settings):
    record = open_bench().write()
    assert (record.rows, record.is_replay) == (0, False)
    assert not settings.locate("out").exists()


def test_numbers_do_as_names(open_bench):
    bench = open_bench("country int, v string")
    bench.write((7, "a"))
    assert bench.read(table="out/7") == [("a",)]


def test_a_value_that_is_no_name_is_told_before_anything_is_written(open_bench, settings):
    bench = open_bench()
    with pytest.raises(SinkError, match=r"cannot name tables by '', '\.\./x', 'a b'\. .*countr"):
        bench.write((1, "de", "a"), (2, "../x", "b"), (3, "a b", "c"), (4, None, "d"))
    assert not settings.locate("out").exists()


def test_too_many_values_are_told_before_anything_is_written(open_bench, settings):
    with pytest.raises(SinkError, match=r"more than 100 values of country.* such as c0, c1, c10"):
        open_bench().write(*((n, f"c{n}", "v") for n in range(101)))
    assert not settings.locate("out").exists()


def test_the_columns_that_are_named_are_written_and_the_route_is_not(open_bench):
    bench = open_bench(columns=["country", "v"])
    bench.prepare()
    bench.write((1, "de", "a"))
    assert bench.read(table="out/de") == [("a",)]


@pytest.mark.parametrize(
    ("schema", "sink", "told"),
    [
        (
            "id long, v string",
            {"partition_by": ["d"]},
            r"\(1\) .*is routed by country.*\(2\) .*laid out by d",
        ),
        (SCHEMA, {"partition_by": ["country"]}, "laid out by country, which .* out of id, v"),
        ("country string", {}, "nothing to write but country"),
        (SCHEMA, {"columns": ["country"]}, "nothing to write but country"),
    ],
)
def test_what_cannot_be_routed_is_refused(open_bench, schema, sink, told):
    with pytest.raises(SinkError, match=told):
        open_bench(schema, **sink).prepare()


def test_new_columns_are_added_where_the_tables_evolve(open_bench):
    bench = open_bench(options={"policy": SchemaChange.EVOLVE})
    bench.write((1, "de", "a"))
    bench.write((2, "de", "b", "x"), schema=f"{SCHEMA}, more string")
    assert bench.read("id", "more", table="out/de") == [(1, None), (2, "x")]


def test_append_writes_the_columns_that_are_named(open_bench):
    bench = open_bench(kind=DeltaAppend, columns=["V", "id"])
    bench.prepare()
    bench.write((1, "de", "a"))
    assert bench.read("id", "v") == [(1, "a")]
    assert len(bench.read()[0]) == 2
    bench.reopen()
    bench.prepare()
