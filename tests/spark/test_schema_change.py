"""Rows whose columns are no longer those of their table."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from tidegate.core.errors import SinkError
from tidegate.core.ledger import Decision
from tidegate.spark.sinks.delta import DeltaAppend
from tidegate.spark.sinks.delta.difference import (
    can_hold,
    find_differences,
    find_renames,
    render,
)

RATE = {"type": "rate", "rows_per_batch": 2}


def struct(**fields):
    return StructType([StructField(name, kind) for name, kind in fields.items()])


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        (LongType(), IntegerType(), True),
        (IntegerType(), LongType(), False),
        (DoubleType(), FloatType(), True),
        (DoubleType(), LongType(), False),
        (StringType(), LongType(), False),
        (DecimalType(12, 2), DecimalType(10, 2), True),
        (DecimalType(10, 2), DecimalType(10, 3), False),
        (DecimalType(12, 2), IntegerType(), True),
        (DecimalType(6, 2), IntegerType(), False),
        (ArrayType(LongType()), ArrayType(ShortType()), True),
        (MapType(StringType(), IntegerType()), MapType(StringType(), LongType()), False),
        (struct(a=LongType(), b=StringType()), struct(a=IntegerType()), True),
        (struct(a=LongType()), struct(a=LongType(), b=StringType()), False),
    ],
)
def test_a_type_holds_what_is_not_larger(wide, narrow, expected):
    assert can_hold(wide, narrow) is expected


def test_differences_are_laid_out_as_a_table():
    rows = struct(id=LongType(), Amount=StringType(), who=LongType(), note=StringType())
    table = struct(ID=LongType(), amount=DoubleType(), customer=LongType())
    differences = list(find_differences(rows, table))
    assert render(differences).splitlines() == [
        "column    rows    table",
        "Amount    string  double  another type",
        "who       bigint  -       new",
        "note      string  -       new",
        "customer  -       bigint  missing",
    ]
    assert find_renames(differences) == [("customer", "who")]


def change(pipeline_of, sql, **parts):
    return pipeline_of(RATE, transform={"sql": f"SELECT {sql} FROM input"}, **parts)


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_new_columns_are_refused_or_added(runs, pipeline_of, rows_of, mode):
    sink = {"mode": mode} | ({"keys": "value", "sequence": "value"} if mode == "upsert" else {})
    runs.run(change(pipeline_of, "value", sink=sink))
    wider = "value, int(value) AS half, array(value) AS list"
    with pytest.raises(SinkError, match=r"(?s)no column for half int, list array<bigint>.*evolve"):
        runs.run(change(pipeline_of, wider, sink=sink))
    runs.run(change(pipeline_of, wider, sink=sink, schema_change="evolve"))
    assert rows_of("out", "value", "half") == [(0, None), (1, None), (2, 2), (3, 3)]
    runs.run(change(pipeline_of, "value", sink=sink))
    assert len(rows_of("out")) == 6


def test_new_columns_are_kept_beside_the_others(runs, pipeline_of, rows_of, capsys):
    runs.run(change(pipeline_of, "value"))
    wider = "value, nullif(value, 2) AS n, if(value = 3, 'x', null) AS t"
    runs.run(change(pipeline_of, wider, schema_change="rescue"))
    assert "out has no column for n, t: kept in _rescued" in capsys.readouterr().out
    expected = [(0, None), (1, None), (2, None), (3, '{"n":3,"t":"x"}')]
    assert rows_of("out", "value", "_rescued") == expected


def test_what_the_source_rescued_and_the_table_lacks_are_kept_together(runs, pipeline_of, rows_of):
    runs.run(change(pipeline_of, "value"))
    both = "value, if(value = 2, null, '{\"z\":1}') AS _rescued, value AS n"
    runs.run(change(pipeline_of, both, schema_change="rescue"))
    rescued = rows_of("out", "value", "_rescued")[2:]
    assert rescued == [(2, '{"n":2}'), (3, '{"z":1,"n":3}')]


def test_tables_named_by_a_column_keep_what_they_lack(runs, pipeline_of, rows_of):
    sink = {"route_by": "t", "table": "by"}
    runs.run(change(pipeline_of, "value, 'a' AS t", sink=sink))
    runs.run(change(pipeline_of, "value, 'a' AS t, value AS n", sink=sink, schema_change="rescue"))
    assert rows_of("by/a", "_rescued")[2:] == [('{"n":2}',), ('{"n":3}',)]
    retyped = change(pipeline_of, "string(value) AS value, 'a' AS t", sink=sink)
    with pytest.raises(SinkError, match="has value of a type that cannot hold"):
        runs.run(retyped)


def test_what_looks_like_a_rename_is_refused_although_the_table_evolves(
    runs, pipeline_of, settings
):
    runs.run(change(pipeline_of, "value, string(value) AS customer"))
    renamed = change(pipeline_of, "value, string(value) AS client", schema_change="evolve")
    with pytest.raises(SinkError, match="may have client under the name customer") as raised:
        runs.run(renamed)
    assert "column    rows    table\nclient    string  -       new" in str(raised.value)
    assert "If a column was renamed, give it its old name" in str(raised.value)


@pytest.mark.parametrize("policy", ["fail", "evolve", "rescue"])
def test_another_type_is_always_refused(runs, pipeline_of, policy):
    runs.run(change(pipeline_of, "value, int(value) AS n"))
    retyped = change(pipeline_of, "value, string(value) AS n", schema_change=policy)
    with pytest.raises(SinkError, match="has n of a type that cannot hold what the rows have"):
        runs.run(retyped)


def test_a_smaller_type_fits(runs, pipeline_of, rows_of):
    runs.run(change(pipeline_of, "value"))
    runs.run(change(pipeline_of, "int(value) AS value"))
    assert rows_of("out", "value") == [(0,), (1,), (2,), (3,)]


@pytest.fixture
def table(spark, settings):
    """A Delta table to read from; its columns are known by ids, so that they can be renamed."""
    location = settings.locate_url("in")
    mapped = "'delta.columnMapping.mode' = 'name'"
    spark.sql(f"CREATE TABLE delta.`{location}` (id long) USING delta TBLPROPERTIES ({mapped})")
    spark.sql(f"INSERT INTO delta.`{location}` VALUES (1)")
    return f"delta.`{location}`"


def read_table(pipeline_of, **parts):
    source = {"type": "delta", "table": "in", "max_files_per_trigger": 1} | parts.pop("source", {})
    return pipeline_of(source, **parts)


def test_a_table_that_gets_a_column_while_it_is_read_is_read_on(
    runs, spark, pipeline_of, table, rows_of, monkeypatch
):
    spark.sql(f"INSERT INTO {table} VALUES (2)")
    pipeline = read_table(pipeline_of, schema_change="evolve")
    write = DeltaAppend.write

    def write_and_change(self, *arguments):
        record = write(self, *arguments)
        monkeypatch.setattr(DeltaAppend, "write", write)
        spark.sql(f"ALTER TABLE {table} ADD COLUMNS (name string)")
        spark.sql(f"INSERT INTO {table} VALUES (3, 'c')")
        return record

    monkeypatch.setattr(DeltaAppend, "write", write_and_change)
    runs.run(pipeline)
    assert rows_of("out", "id", "name") == [(1, None), (2, None), (3, "c")]


def test_a_renamed_column_is_refused_with_the_way_on(
    runs, spark, pipeline_of, table, rows_of, settings
):
    tracked = {"source": {"schema_tracking": True}, "schema_change": "evolve"}
    runs.run(read_table(pipeline_of, **tracked))  # the log of the schema is begun by a new start
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN id TO number")
    spark.sql(f"INSERT INTO {table} VALUES (2)")
    with pytest.raises(SinkError, match=r"(?s)may have number under the name id.*its old name"):
        runs.run(read_table(pipeline_of, **tracked))
    tracked["transform"] = {"sql": "SELECT number AS id FROM input"}
    named = read_table(pipeline_of, **tracked)
    with pytest.raises(Exception, match="POST_SCHEMA_EVOLUTION"):
        runs.run(named)
    error = runs.ledger(named).find_latest().attempt.error
    assert "allowSourceColumnRename: always" in error
    allowed = {"spark.databricks.delta.streaming.allowSourceColumnRename": "always"}
    runs.run(read_table(pipeline_of, spark=allowed, **tracked))
    assert rows_of("out", "id") == [(1,), (2,)]
    assert runs.plan(named).decision is Decision.IDLE
