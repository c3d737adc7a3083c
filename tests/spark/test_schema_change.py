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


def test_what_looks_like_a_rename_is_refused_although_the_table_evolves(
    runs, pipeline_of, settings
):
    runs.run(change(pipeline_of, "value, string(value) AS customer"))
    renamed = change(pipeline_of, "value, string(value) AS client", schema_change="evolve")
    with pytest.raises(SinkError, match="may have client under the name customer") as raised:
        runs.run(renamed)
    assert "column    rows    table\nclient    string  -       new" in str(raised.value)
    assert "If a column was renamed, give it its old name" in str(raised.value)


@pytest.mark.parametrize("policy", ["fail", "evolve"])
def test_another_type_is_always_refused(runs, pipeline_of, policy):
    runs.run(change(pipeline_of, "value, int(value) AS n"))
    retyped = change(pipeline_of, "value, string(value) AS n", schema_change=policy)
    with pytest.raises(SinkError, match="has n of a type that cannot hold what the rows have"):
        runs.run(retyped)


def test_a_smaller_type_fits(runs, pipeline_of, rows_of):
    runs.run(change(pipeline_of, "value"))
    runs.run(change(pipeline_of, "int(value) AS value"))
    assert rows_of("out", "value") == [(0,), (1,), (2,), (3,)]
