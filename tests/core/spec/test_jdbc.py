"""A database's table as a sink, as a spec declares it."""

import pytest

from tidegate.core.spec.expectation import Expectation
from tidegate.core.spec.sinks.jdbc import JdbcSink


@pytest.fixture
def write_jdbc(write):
    """Write a spec with a jdbc sink in flow style, further fields given as YAML."""
    return lambda fields: write(sinks=f"[{{type: jdbc, connection: warehouse, {fields}}}]")


def test_a_sink_from_yaml_equals_one_built_in_python(write_jdbc, parse):
    pipeline = parse(write_jdbc("table: sales.orders, mode: upsert, keys: id, sequence: [at, n]"))
    assert pipeline.sinks == (
        JdbcSink(
            type="jdbc",
            connection="warehouse",
            table="sales.orders",
            mode="upsert",
            keys=("id",),
            sequence=("at", "n"),
        ),
    )
    assert pipeline.connections == ("warehouse",)


def test_rows_are_appended_unless_told(write_jdbc, parse):
    (sink,) = parse(write_jdbc("table: orders")).sinks
    assert (sink.mode, sink.keys, sink.rules) == ("append", (), ())


def test_a_row_to_be_known_again_must_have_its_keys_and_sequence(write_jdbc, parse):
    (sink,) = parse(write_jdbc("table: t, mode: upsert, keys: id, sequence: at")).sinks
    assert sink.rules == (Expectation(name="needed_columns", not_null=("id", "at")),)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("name: x", "table (line 3): is required and missing"),
        ("table: a.b.c", "must be a table's name or schema.table"),
        ("table: 'a; drop table b'", "must be a table's name or schema.table"),
        ("table: t, mode: merge", "mode (line 3)"),
        ("table: t, mode: upsert", "mode upsert needs keys and sequence"),
        ("table: t, mode: upsert, keys: id", "mode upsert needs sequence"),
        ("table: t, keys: id", "keys and sequence are only for mode upsert"),
        ("table: t, mode: upsert, keys: [a, A], sequence: b", "keys names a more than once"),
        (
            "table: t, mode: upsert, keys: [a, b], sequence: c, columns: [A, c]",
            "columns leaves out b, which keys names",
        ),
        ("table: t, password: x", "password"),
    ],
)
def test_a_sink_that_would_not_be_right_is_told(write_jdbc, problem_of, fields, problem):
    assert problem in problem_of(write_jdbc(fields))


def test_a_connection_must_be_named(write, problem_of):
    assert problem_of(write(sinks="[{type: jdbc, table: t}]")) == (
        "sinks[0].connection (line 3): is required and missing"
    )
