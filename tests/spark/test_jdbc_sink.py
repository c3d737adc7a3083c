"""Rows in a real PostgreSQL, each batch once, whatever fails in between."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from datetime import time as clock
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import IntegerType

from tests.postgres import PASSWORD
from tidegate.core.connection import HANDED_OVER, hand_over
from tidegate.core.errors import SinkAwayError, SinkError
from tidegate.core.ledger import SinkRecord
from tidegate.core.spec.sinks.jdbc import JdbcSink
from tidegate.spark.sinks.jdbc import session as sessions
from tidegate.spark.sinks.jdbc import statements
from tidegate.spark.sinks.jdbc.postgres import LEDGER, Postgres
from tidegate.spark.sinks.jdbc.writer import JdbcWriter

QUERY = "0deb1b20-c45a-4899-a0d5-625287cc67aa"
EVERY_TYPE = """
SELECT true AS boolean_, 127Y AS byte_, -32768S AS short_, 2147483647 AS int_,
       -9223372036854775808L AS long_, CAST(0.1 AS float) AS float_, 0.1D + 0.2D AS double_,
       CAST('NaN' AS double) AS nan_, CAST('-Infinity' AS double) AS infinite,
       CAST('12345678901234567890.123456789' AS decimal(38,9)) AS decimal_,
       CAST('0.0000001' AS decimal(10,7)) AS tiny,
       concat('a, "b"', char(10), char(13), char(9), '\\\\\\\\N \\\\\\\\. ä 😀') AS string_, '' AS empty,
       X'00FF5C' AS binary_, X'' AS no_bytes, DATE'0001-02-03' AS date_, TIME'23:59:59.123456' AS time_,
       TIMESTAMP'1890-01-01 00:00:00 Europe/Berlin' AS old, TIMESTAMP'2024-07-01 12:00:00.123456Z' AS at,
       TIMESTAMP_NTZ'2024-07-01 12:00:00.123456' AS local_,
       array(1, NULL, 3) AS array_, map('a', 1, 'b', NULL) AS map_,
       named_struct('a', NULL, 't', TIMESTAMP'2024-07-01 12:00:00.123456Z', 'l', array('x')) AS struct_,
       parse_json('{"a": [1, null, "x"]}') AS variant_
"""
EVERY_VALUE = {
    "boolean_": ("boolean", True),
    "byte_": ("smallint", 127),
    "short_": ("smallint", -32768),
    "int_": ("integer", 2147483647),
    "long_": ("bigint", -9223372036854775808),
    "float_": ("real", 0.1),
    "double_": ("double precision", 0.1 + 0.2),
    "nan_": ("double precision", float("nan")),
    "infinite": ("double precision", float("-inf")),
    "decimal_": ("numeric(38,9)", Decimal("12345678901234567890.123456789")),
    "tiny": ("numeric(10,7)", Decimal("0.0000001")),
    "string_": ("text", 'a, "b"\n\r\t\\\\N \\\\. ä 😀'),
    "empty": ("text", ""),
    "binary_": ("bytea", b"\0\xff\\"),
    "no_bytes": ("bytea", b""),
    "date_": ("date", date(1, 2, 3)),
    "time_": ("time without time zone", clock(23, 59, 59, 123456)),
    "old": ("timestamp with time zone", datetime(1889, 12, 31, 23, 6, 32, tzinfo=UTC)),
    "at": ("timestamp with time zone", datetime(2024, 7, 1, 12, 0, 0, 123456, UTC)),
    "local_": ("timestamp without time zone", datetime(2024, 7, 1, 12, 0, 0, 123456)),  # noqa: DTZ001
    "array_": ("jsonb", [1, None, 3]),
    "map_": ("jsonb", {"a": 1, "b": None}),
    "struct_": ("jsonb", {"a": None, "t": "2024-07-01T12:00:00.123456Z", "l": ["x"]}),
    "variant_": ("jsonb", {"a": [1, None, "x"]}),
}


class Place:
    """A schema of a test's own, and sinks that write to it."""

    def __init__(self, server):
        self.server = server
        self.name = f"s{uuid4().hex[:8]}"
        self.run(f"CREATE SCHEMA {self.name}")

    def open(self, table="t", **fields):
        spec = {"type": "jdbc", "connection": "warehouse", "table": f"{self.name}.{table}"}
        return JdbcWriter(JdbcSink.model_validate(spec | fields))

    def run(self, statement, *values):
        return self.server.run(statement, *values, options=f"-csearch_path={self.name}")

    def read(self, table="t"):
        return self.run(f"SELECT * FROM {table} ORDER BY 1, 2")

    def count(self, table="t"):
        return self.run(f"SELECT count(*) FROM {table}")[0][0]

    def list_tables(self):
        found = self.run("SELECT tablename FROM pg_tables WHERE schemaname = %s", self.name)
        return {name for (name,) in found}

    def list_batches(self):
        return self.run(f"SELECT query_id, sink, batch_id, rows FROM {LEDGER} ORDER BY sink")


@pytest.fixture
def place(postgres, monkeypatch):
    monkeypatch.setenv("TIDEGATE_CONN_WAREHOUSE", json.dumps(postgres.options))
    place = Place(postgres)
    yield place
    place.run(f"DROP SCHEMA {place.name} CASCADE")


@pytest.fixture
def upsert(place):
    return place.open(mode="upsert", keys=["id"], sequence=["seq"])


@pytest.fixture
def numbers(spark):
    """Rows of two columns, in three partitions, the first of them empty."""
    return lambda count: (
        spark.range(0, count, 1, 2)
        .union(spark.range(0, 0, 1, 1))
        .selectExpr("id", "concat('n', id) AS name")
    )


@pytest.fixture
def rows_of_upsert(spark):
    return lambda *rows: spark.createDataFrame(rows, "id int, seq int, v string")


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(sessions, "_PATIENCE_SECONDS", 0.1)


def once(action):
    """Make a function that acts when it is called for the first time."""
    waiting = [action]
    return lambda: waiting.pop()() if waiting else None


def around(patch, method, *, before=lambda: None, after=lambda: None):
    """Let something happen before and after a method of PostgreSQL's dialect."""
    real = getattr(Postgres, method)

    def call(self, *values, **named):
        before()
        result = real(self, *values, **named)
        after()
        return result

    patch.setattr(Postgres, method, call)


def fail(error):
    def act():
        raise error

    return act


def test_a_batch_makes_the_table_and_leaves_its_mark(place, spark, numbers):
    sink, rows = place.open(), numbers(1000)
    sink.prepare(spark, rows.schema)
    assert place.list_tables() == set()
    assert sink.write(rows, 0, QUERY) == SinkRecord(rows=1000, version=None)
    assert place.read() == [(n, f"n{n}") for n in range(1000)]
    assert place.list_batches() == [(QUERY, "main", 0, 1000)]
    assert place.list_tables() == {"t", LEDGER}


def test_a_batch_without_rows_is_marked_as_well(place, numbers):
    assert place.open().write(numbers(0), 4, QUERY).rows == 0
    assert (place.count(), place.list_batches()) == (0, [(QUERY, "main", 4, 0)])


def test_only_the_sink_s_columns_are_written_in_its_order(place, spark, numbers):
    sink = place.open(columns=["NAME", "id"])
    sink.prepare(spark, numbers(1).schema)
    sink.write(numbers(1), 0, QUERY)
    assert place.read() == [("n0", 0)]


def test_a_table_without_a_schema_is_in_the_first_one_of_the_search_path(place, spark, numbers):
    sink = JdbcWriter(JdbcSink(type="jdbc", connection="warehouse", table=f"t_{place.name}"))
    try:
        sink.write(numbers(3), 0, QUERY)
        found = place.run(f"SELECT count(*) FROM public.t_{place.name}")
        assert found == [(3,)]
    finally:
        place.run(f"DROP TABLE public.t_{place.name}, public.{LEDGER}")


def test_every_type_arrives_as_it_was(place, spark):
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    session.conf.set("spark.sql.timeType.enabled", "true")
    rows = session.sql(EVERY_TYPE)
    nulls = rows.select(*(F.lit(None).cast(f.dataType).alias(f.name) for f in rows.schema))
    place.open().write(rows.union(nulls), 0, QUERY)
    names = list(EVERY_VALUE)
    kinds = place.run(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum"
    )
    assert kinds == [(name, kind) for name, (kind, _) in EVERY_VALUE.items()]
    found, empty = place.run("SELECT * FROM t ORDER BY int_ NULLS LAST")
    values = dict(zip(names, found, strict=True))
    assert repr(values.pop("nan_")) == "nan"
    assert values == {name: value for name, (_, value) in EVERY_VALUE.items() if name != "nan_"}
    assert set(empty) == {None}


def test_a_table_that_is_wider_than_the_rows_takes_them(place, spark):
    place.run("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    place.run("CREATE DOMAIN positive AS bigint CHECK (value > 0)")
    place.run(
        "CREATE TABLE t (a bigint, b numeric, c numeric(12,4), d varchar(3), e uuid, f mood, "
        "g jsonb, h double precision, i text, j positive, made int GENERATED ALWAYS AS IDENTITY, "
        "filled timestamptz NOT NULL DEFAULT now())"
    )
    rows = spark.sql(
        "SELECT 1 AS a, 2L AS b, CAST(1.5 AS decimal(10,2)) AS c, 'abc' AS d, "
        "'5d3f0b5e-0d6c-4b62-8a3c-9a8a4f8f6f10' AS e, 'glad' AS f, '{\"x\": 1}' AS g, "
        "CAST(0.5 AS float) AS h, array(1) AS i, 7 AS j"
    )
    sink = place.open()
    sink.prepare(spark, rows.schema)
    sink.write(rows, 0, QUERY)
    (found,) = place.run("SELECT a, b, c, d, e::text, f::text, g, h, i, j, made FROM t")
    assert found == (
        *(1, 2, Decimal("1.5000"), "abc", "5d3f0b5e-0d6c-4b62-8a3c-9a8a4f8f6f10", "glad"),
        *({"x": 1}, 0.5, "[1]", 7, 1),
    )
    assert sink.read_schema(spark).simpleString() == (
        "struct<a:bigint,b:string,c:decimal(12,4),d:string,e:string,f:string,g:string,h:double,"
        "i:string,j:bigint,made:int,filled:timestamp>"
    )


def test_names_that_need_quotes_are_quoted(place, spark):
    rows = spark.createDataFrame([(1, 2, 3, 4)], ["select", 'O"x', "ä b", "a`.b"])
    place.open("Group").write(rows, 0, QUERY)
    assert place.run('SELECT "select", "O""x", "ä b", "a`.b" FROM "Group"') == [(1, 2, 3, 4)]


def test_names_in_another_case_mean_the_table_s_columns(place, spark, numbers):
    place.run("CREATE TABLE t (name text, id bigint)")
    place.open().write(numbers(1).toDF("ID", "Name"), 0, QUERY)
    assert place.read() == [("n0", 0)]


def test_the_newest_row_of_each_key_is_kept(place, upsert, rows_of_upsert):
    first = rows_of_upsert((1, 1, "a"), (1, 3, "b"), (1, 2, "c"), (2, 5, None))
    assert upsert.write(first, 0, QUERY).rows == 2
    assert place.read() == [(1, 3, "b"), (2, 5, None)]
    second = rows_of_upsert((1, 2, "late"), (1, 3, "as new"), (2, 6, "newer"), (3, 0, "new"))
    assert upsert.write(second, 1, QUERY).rows == 2
    assert place.read() == [(1, 3, "b"), (2, 6, "newer"), (3, 0, "new")]


def test_what_a_backfill_brings_takes_the_place_of_what_is_as_new(place, upsert, rows_of_upsert):
    upsert.write(rows_of_upsert((1, 1, "a"), (2, 5, "b")), 0, QUERY)
    place.run("UPDATE t SET v = 'zzz' WHERE id = 1")
    place.run("DELETE FROM t WHERE id = 2")
    upsert.heals = True
    upsert.write(rows_of_upsert((1, 0, "older"), (1, 1, "a"), (2, 5, "b")), 0, "a backfill")
    assert place.read() == [(1, 1, "a"), (2, 5, "b")]


@pytest.mark.parametrize("order", [1, -1])
def test_of_rows_that_are_as_new_the_same_one_is_kept_in_any_order(
    place, upsert, rows_of_upsert, order
):
    rows = [(1, 1, "a"), (1, 1, None), (1, 1, "Z"), (1, 1, "b"), (1, 0, "z")][::order]
    upsert.write(rows_of_upsert(*rows), 0, QUERY)
    assert place.read() == [(1, 1, "b")]


def test_several_columns_tell_what_is_newer_and_a_row_without_them_is_older(place, spark):
    place.run("CREATE TABLE t (k text PRIMARY KEY, s text, u text, v int)")
    place.run("INSERT INTO t VALUES ('a', 'Z', 'z', 0), ('b', NULL, 'z', 0), ('c', 'b', 'b', 0)")
    rows = [("a", "a", "a", 1), ("b", "a", "a", 1), ("c", "b", "a", 1), ("d", "a", "a", 1)]
    sink = place.open(mode="upsert", keys=["k"], sequence=["s", "u"])
    sink.write(spark.createDataFrame(rows, "k string, s string, u string, v int"), 0, QUERY)
    assert place.run("SELECT k, v FROM t ORDER BY k") == [("a", 1), ("b", 1), ("c", 0), ("d", 1)]


def test_a_table_of_nothing_but_keys_is_kept_up_too(place, spark):
    sink = place.open(mode="upsert", keys=["a", "b"], sequence=["b"])
    rows = spark.createDataFrame([(1, 1), (1, 1), (1, 2)], "a int, b int")
    assert [sink.write(rows, n, QUERY).rows for n in (0, 1)] == [2, 0]
    assert place.read() == [(1, 1), (1, 2)]


def test_a_batch_that_comes_again_is_passed_over(place, numbers):
    sink = place.open()
    assert sink.write(numbers(10), 0, QUERY) == SinkRecord(10, None)
    assert sink.write(numbers(10), 0, QUERY) == SinkRecord(10, None, is_replay=True)
    assert sink.write(numbers(5), 1, QUERY) == SinkRecord(5, None)
    assert sink.write(numbers(10), 0, QUERY) == SinkRecord(None, None, is_replay=True)
    assert place.count() == 15


def test_sinks_and_queries_have_batches_of_their_own(place, numbers):
    for sink, query in (("main", QUERY), ("other", QUERY), ("main", "another query")):
        assert not place.open(name=sink).write(numbers(1), 0, query).is_replay
    assert place.count() == 3
    assert len(place.list_batches()) == 3


def test_a_failure_between_staging_and_commit_leaves_nothing(place, numbers, monkeypatch):
    sink = place.open()
    with monkeypatch.context() as patch:
        around(patch, "commit", before=fail(SinkError("The machine went away.")))
        with pytest.raises(SinkError, match="went away"):
            sink.write(numbers(10), 0, QUERY)
    assert place.list_tables() == {LEDGER}
    assert place.list_batches() == []
    assert sink.write(numbers(10), 0, QUERY) == SinkRecord(10, None)
    assert place.count() == 10


def test_a_failure_within_the_transaction_leaves_nothing(place, numbers, monkeypatch):
    sink = place.open()
    sink.write(numbers(1), 0, QUERY)
    with monkeypatch.context() as patch:
        around(patch, "_move", after=fail(SinkError("The machine went away.")))
        with pytest.raises(SinkError, match="went away"):
            sink.write(numbers(10), 1, QUERY)
    assert (place.count(), place.list_batches()) == (1, [(QUERY, "main", 0, 1)])
    assert sink.write(numbers(10), 1, QUERY) == SinkRecord(10, None)


def test_a_failure_after_the_commit_doubles_nothing(place, numbers, monkeypatch):
    sink = place.open()
    with monkeypatch.context() as patch:
        around(patch, "commit", after=fail(SinkError("Spark's own commit failed.")))
        with pytest.raises(SinkError, match="Spark's own"):
            sink.write(numbers(10), 0, QUERY)
    assert sink.write(numbers(10), 0, QUERY) == SinkRecord(10, None, is_replay=True)
    assert place.count() == 10


def test_what_a_killed_driver_staged_is_swept_by_the_next_commit(place, numbers, monkeypatch):
    sink = place.open()
    with monkeypatch.context() as patch:
        around(patch, "commit", before=fail(SinkError("killed")))
        patch.setattr(Postgres, "clean", lambda *_: None)
        for _ in range(2):
            with pytest.raises(SinkError):
                sink.write(numbers(10), 0, QUERY)
    assert len(place.list_tables() - {LEDGER}) == 2
    sink.write(numbers(10), 0, QUERY)
    assert place.list_tables() == {"t", LEDGER}
    assert place.count() == 10


def test_a_staging_that_a_lost_task_holds_does_not_stop_the_batch(place, numbers, monkeypatch):
    monkeypatch.setattr(statements, "WAIT_BRIEFLY", "SET LOCAL lock_timeout = '50ms'")
    with place.server.connect() as lost:

        def hold():
            (name,) = place.list_tables() - {LEDGER, "t"}
            lost.execute(f"BEGIN; LOCK TABLE {place.name}.{name} IN ROW EXCLUSIVE MODE")

        around(monkeypatch, "_sweep", before=once(hold))
        assert place.open().write(numbers(10), 0, QUERY) == SinkRecord(10, None)
        assert len(place.list_tables()) == 3
    place.open().write(numbers(10), 1, QUERY)
    assert place.list_tables() == {"t", LEDGER}


def test_two_drivers_with_the_same_batch_write_it_once(place, numbers, monkeypatch):
    rows, meeting = numbers(1000), threading.Barrier(2, timeout=60)
    around(monkeypatch, "commit", before=meeting.wait)
    with ThreadPoolExecutor(2) as pool:
        written = [pool.submit(place.open().write, rows, 0, QUERY) for _ in range(2)]
        records = [one.result() for one in written]
    assert sorted(record.is_replay for record in records) == [False, True]
    assert {record.rows for record in records} == {1000}
    assert place.count() == 1000
    assert place.list_batches() == [(QUERY, "main", 0, 1000)]


def test_a_driver_whose_staging_another_one_swept_passes_the_batch_over(
    place, numbers, monkeypatch
):
    rival = place.open()
    around(monkeypatch, "commit", before=once(lambda: rival.write(numbers(10), 0, QUERY)))
    assert place.open().write(numbers(10), 0, QUERY) == SinkRecord(10, None, is_replay=True)
    assert place.count() == 10


def test_rows_of_a_task_that_was_tried_twice_count_once(place, numbers, monkeypatch):
    def stage_more():
        (name,) = place.list_tables() - {LEDGER}
        place.run(f"INSERT INTO {name} SELECT -1, id, name FROM {name}")

    around(monkeypatch, "commit", before=stage_more)
    assert place.open().write(numbers(10), 0, QUERY) == SinkRecord(10, None)
    assert place.count() == 10


def test_a_batch_is_completed_when_the_database_restarts_while_it_is_copied(
    place, spark, postgres, tmp_path
):
    go_on = tmp_path / "go on"

    def wait(value):
        while value == 150_000 and not go_on.exists():
            time.sleep(0.05)
        return value

    waited = F.udf(wait, IntegerType())(F.col("id").cast("int"))
    rows = spark.range(0, 200_000, 1, 1).select(waited.alias("id"), F.lit("x").alias("name"))
    copying = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY%tidegate_staging%'"
    with ThreadPoolExecutor(1) as pool:
        written = pool.submit(place.open().write, rows, 0, QUERY)
        try:
            while postgres.run(copying) == [(0,)]:
                assert not written.done(), written.exception()
            postgres.restart()
        finally:
            go_on.touch()
        assert written.result().rows == 200_000
    assert (place.count(), place.list_tables()) == (200_000, {"t", LEDGER})


def test_rows_that_a_crash_took_from_the_staging_are_staged_again(
    place, numbers, postgres, monkeypatch
):
    around(monkeypatch, "commit", before=once(lambda: postgres.restart(signal.SIGKILL)))
    assert place.open().write(numbers(1000), 0, QUERY) == SinkRecord(1000, None)
    assert place.count() == 1000


def test_a_connection_lost_in_the_transaction_is_opened_again(
    place, numbers, postgres, monkeypatch
):
    terminate = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'tidegate' AND state = 'idle in transaction'"
    )
    around(monkeypatch, "_move", after=once(lambda: postgres.run(terminate)))
    assert place.open().write(numbers(10), 0, QUERY) == SinkRecord(10, None)
    assert place.count() == 10


def test_a_commit_whose_answer_was_lost_counts(place, numbers, monkeypatch):
    around(monkeypatch, "commit", after=once(fail(SinkAwayError("No answer came."))))
    assert place.open().write(numbers(10), 0, QUERY) == SinkRecord(10, None, is_replay=True)
    assert place.count() == 10


def test_a_database_that_stays_away_fails_the_batch_and_the_next_attempt_completes_it(
    place, numbers, postgres, monkeypatch, impatient
):
    sink = place.open()
    with monkeypatch.context() as patch:
        around(patch, "commit", before=postgres.stop)
        try:
            with pytest.raises(SinkAwayError, match=r"'warehouse' cannot be reached: .*refused"):
                sink.write(numbers(10), 0, QUERY)
        finally:
            postgres.start()
    assert sink.write(numbers(10), 0, QUERY) == SinkRecord(10, None)
    assert place.list_tables() == {"t", LEDGER}


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("id bigint UNIQUE, name text", "t_id_key is unique"),
        ("id bigint, name text NOT NULL", "column name must not be null"),
        ("id bigint, name text CONSTRAINT short CHECK (name <> 'secret')", "short is a check"),
        ("id bigint, name text REFERENCES other", "t_name_fkey refers to another table"),
    ],
)
def test_a_constraint_that_a_row_breaks_is_named_without_its_values(place, spark, table, told):
    place.run("CREATE TABLE other (name text PRIMARY KEY)")
    place.run(f"CREATE TABLE t ({table})")
    rows = spark.createDataFrame([(1, "secret"), (1, "secret"), (2, None)], "id long, name string")
    with pytest.raises(SinkError, match=r"breaks a constraint of .*t: ") as raised:
        place.open().write(rows, 0, QUERY)
    assert told in str(raised.value)
    assert "secret" not in str(raised.value)
    assert raised.value.__suppress_context__
    assert (place.count(), place.list_batches()) == (0, [])
    assert place.list_tables() == {"t", "other", LEDGER}


@pytest.mark.parametrize(
    ("expression", "kind", "told"),
    [
        ("concat('secret', char(0))", "text", "in the column v, holds the character NUL"),
        ("array(concat('secret', char(0)))", "jsonb", "in the column v, holds the character NUL"),
        (
            "'secret'",
            "varchar(3)",
            "for its column v: value too long for type character varying(3)",
        ),
        ("'secret'", "uuid", "for its column v: invalid input syntax for type uuid."),
        ("'secret'", "jsonb", "for its column v: invalid input syntax for type json."),
    ],
)
def test_a_value_that_is_not_taken_is_told_by_its_column(place, spark, expression, kind, told):
    place.run(f"CREATE TABLE t (id bigint, v {kind})")
    rows = spark.range(2).selectExpr("id", f"{expression} AS v")
    with pytest.raises(SinkError) as raised:
        place.open().write(rows, 0, QUERY)
    assert told in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_number_that_is_too_large_is_told_without_it(place, spark, monkeypatch):
    rows = spark.sql("SELECT 99999 AS id, 'x' AS name")
    sink = place.open()
    # As if the table were changed after the batch had begun.
    place.run("CREATE TABLE t (id int, name text)")
    narrow = f"ALTER TABLE {place.name}.t ALTER id TYPE smallint"
    claim = staticmethod(lambda session, *_: session.execute(narrow))
    monkeypatch.setattr(Postgres, "_claim", claim)
    with pytest.raises(SinkError, match="smallint out of range") as raised:
        sink.write(rows, 0, QUERY)
    assert "99999" not in str(raised.value)


def test_all_that_is_wrong_with_a_table_is_told_before_anything_is_written(place, spark):
    place.run(
        "CREATE TABLE t (id int, at timestamptz(0), price numeric(10,2), must text NOT NULL, "
        "made bigint GENERATED ALWAYS AS IDENTITY)"
    )
    place.run("CREATE UNIQUE INDEX ON t (id) WHERE id > 0")
    rows = spark.sql(
        "SELECT 1L AS id, current_timestamp() AS at, CAST(1 AS decimal(12,3)) AS price, "
        "1L AS made, 'x' AS more, 1 AS seq"
    )
    with pytest.raises(SinkError, match="cannot take the rows") as raised:
        place.open(mode="upsert", keys=["id"], sequence=["at"]).prepare(spark, rows.schema)
    for told in (
        "its column id is integer, and the rows have bigint",
        "its column at is timestamp(0) with time zone, and the rows have timestamp",
        "its column price is numeric(10,2), and the rows have decimal(12,3)",
        "it makes up its column made itself",
        "it has no column more text",
        "it has no column seq integer",
        "it needs must, which the rows do not have",
        "it has no unique index on just id",
    ):
        assert told in str(raised.value)
    assert place.list_tables() == {"t"}


def test_columns_and_types_that_no_table_can_have_are_told(place, spark):
    rows = spark.sql(f"SELECT INTERVAL '1' DAY AS span, NULL AS nothing, 1 AS {'x' * 64}")
    with pytest.raises(SinkError) as raised:
        place.open().prepare(spark, rows.schema)
    assert "no type for span interval day, only for boolean, byte" in str(raised.value)
    assert "no type for nothing void" in str(raised.value)
    assert "is longer than 63 bytes" in str(raised.value)
    with pytest.raises(SinkError, match=r"takes nope, which its rows do not have.*out of span"):
        place.open(columns=["nope"]).prepare(spark, rows.schema)


def test_a_view_and_a_schema_that_is_not_there_are_told(place, spark, numbers):
    place.run("CREATE VIEW t AS SELECT 1::bigint AS id, 'x' AS name")
    with pytest.raises(SinkError, match="it is no table"):
        place.open().prepare(spark, numbers(1).schema)
    sink = JdbcSink(type="jdbc", connection="warehouse", table="nowhere.t")
    with pytest.raises(SinkError, match="the database has no schema nowhere"):
        JdbcWriter(sink).prepare(spark, numbers(1).schema)


def test_rights_that_a_user_lacks_are_told(place, spark, numbers, postgres, monkeypatch):
    user = f"u{uuid4().hex[:8]}"
    place.run(f"CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}'")
    place.run(f"GRANT USAGE ON SCHEMA {place.name} TO {user}")
    place.run("CREATE TABLE t (id bigint, name text)")
    options = json.dumps(postgres.options | {"user": user})
    monkeypatch.setenv("TIDEGATE_CONN_WAREHOUSE", options)
    try:
        with pytest.raises(SinkError, match=r"may not create tables in .*GRANT CREATE ON SCHEMA"):
            place.open().prepare(spark, numbers(1).schema)
        place.run(f"GRANT CREATE ON SCHEMA {place.name} TO {user}")
        with pytest.raises(SinkError, match="lacks the right to INSERT"):
            place.open().prepare(spark, numbers(1).schema)
        place.run(f"GRANT INSERT ON t TO {user}")
        place.run(f"CREATE TABLE {LEDGER} (query_id text, sink text, batch_id bigint, rows bigint)")
        with pytest.raises(SinkError, match=r"may not write .*permission denied for table"):
            place.open().write(numbers(1), 0, QUERY)
    finally:
        place.run(f"DROP OWNED BY {user}; DROP ROLE {user}")


@pytest.mark.parametrize(
    ("changed", "error", "told"),
    [
        ({"password": "wrong"}, SinkError, "refuses it: password authentication failed for user"),
        ({"dbname": "nowhere"}, SinkError, 'refuses it: database "nowhere" does not exist'),
        ({"port": "1"}, SinkAwayError, "cannot be reached: Connection refused"),
    ],
)
def test_a_connection_that_does_not_open_is_told(
    place, spark, numbers, postgres, monkeypatch, impatient, changed, error, told
):
    options = json.dumps(postgres.options | changed)
    monkeypatch.setenv("TIDEGATE_CONN_WAREHOUSE", options)
    with pytest.raises(error) as raised:
        place.open().prepare(spark, numbers(1).schema)
    assert type(raised.value) is error
    assert told in str(raised.value)
    assert "wrong" not in str(raised.value)


def test_what_is_observed_of_the_rows_is_known_once_they_are_written(place, numbers):
    seen = Observation()
    place.open().write(numbers(10).observe(seen, F.count("id").alias("count")), 0, QUERY)
    assert seen.get == {"count": 10}


def test_a_pipeline_writes_its_batches_once(place, runs, pipeline_of, settings):
    folder = Path(settings.data) / "landing"
    folder.mkdir(parents=True)
    for batch in range(3):
        lines = (json.dumps({"id": 10 * batch + n, "name": "x"}) for n in range(10))
        (folder / f"{batch}.json").write_text("\n".join(lines))
    source = {
        "type": "files",
        "path": "landing",
        "format": "json",
        "schema": "id long, name string",
        "max_files_per_trigger": 1,
        "provenance": False,
        "malformed": "drop",
    }
    spec = pipeline_of(source).model_dump(mode="json", by_alias=True, exclude_unset=True)
    spec["sinks"] = [{"type": "jdbc", "connection": "warehouse", "table": f"{place.name}.t"}]
    pipeline = type(pipeline_of(source)).model_validate(spec)
    run = runs.run(pipeline)
    assert (run.summary.batches, run.summary.output_rows) == ((0, 1, 2), 30)
    assert place.read() == [(n, "x") for n in range(30)]
    assert place.list_batches() == [(runs.find_query_id(pipeline), "main", 2, 10)]


PROGRAM = """
import json, os, sys
from pathlib import Path
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from tidegate.core.spec.sinks.jdbc import JdbcSink
from tidegate.spark.sinks.jdbc.writer import JdbcWriter

def look(_):
    files = (Path("/proc/self") / name for name in ("environ", "cmdline"))
    return json.dumps([file.read_bytes().decode() for file in files])

session = SparkSession.builder.getOrCreate()
rows = session.range(3).select("id", F.udf(look)("id").alias("seen"))
writer = JdbcWriter(JdbcSink.model_validate_json(sys.argv[1]))
writer.prepare(session, rows.schema)
print(writer.write(rows, 0, "q"), vars(writer))
rows.mapInArrow(writer._database.open_copy(writer._database.begin(rows.schema, SIMPLE)), "t long")\\
    .explain(True)
try:
    writer.write(rows.selectExpr("id", "concat(seen, char(0)) AS seen"), 1, "q")
except Exception:
    import traceback
    traceback.print_exc()
session.stop()
"""


def test_the_password_is_in_no_plan_log_command_or_environment(place, postgres, tmp_path):
    program, events = tmp_path / "program.py", tmp_path / "events"
    mark = "__import__('tidegate.spark.sinks.jdbc.dialect', fromlist=['Mark']).Mark('q2', 'm', 0)"
    program.write_text(PROGRAM.replace("SIMPLE", mark))
    events.mkdir()
    sink = {"type": "jdbc", "connection": "warehouse", "table": f"{place.name}.t"}
    conf = {
        "spark.master": "local[1]",
        "spark.log.level": "INFO",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": str(events),
    }
    arguments = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    submit = Path(sys.executable).with_name("spark-submit")
    inherited = {key: value for key, value in os.environ.items() if "_CONN_" not in key}
    with hand_over(["warehouse"], lambda _: postgres.options) as left:
        done = subprocess.run(
            [str(submit), *arguments, str(program), json.dumps(sink)],
            env=inherited | left | {"PYSPARK_PYTHON": sys.executable},
            capture_output=True,
            text=True,
            check=False,
        )
    said = done.stdout + done.stderr
    assert "SinkRecord(rows=3" in said
    assert "holds the character NUL" in said
    assert "MapInArrow copy(" in said
    logged = "".join(file.read_text() for file in events.rglob("*") if file.is_file())
    assert "MapInArrow copy(" in logged
    [(seen,)] = place.run("SELECT DISTINCT seen FROM t")
    texts = {"said": said, "logged": logged, "seen": seen, "server": postgres.log}
    # Not compared as a whole: a failed test must not print an environment.
    assert [name for name, text in texts.items() if HANDED_OVER in text] == ["seen"]
    assert [name for name, text in texts.items() if PASSWORD in text] == []
