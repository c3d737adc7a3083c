import pytest
from pydantic import ValidationError

from tidegate.core.spec.sinks.delta import DeltaSink


def test_a_sink_from_yaml_equals_one_built_in_python(write_sink, parse):
    pipeline = parse(write_sink("table: gold/sales, name: sales, partition_by: [day, Country]"))
    assert pipeline.sinks == (
        DeltaSink(type="delta", table="gold/sales", name="sales", partition_by=("day", "Country")),
    )


def test_a_sink_is_named_main_unless_told(write_sink, parse):
    assert parse(write_sink("table: out")).sinks[0].name == "main"


def test_partitions_and_clusters_together_are_refused(write_sink, problem_of):
    assert problem_of(write_sink("table: out, partition_by: [a], cluster_by: [b]")) == (
        "sinks[0] (line 3): takes partition_by or cluster_by, not both: Delta refuses the two"
    )


@pytest.mark.parametrize("field", ["partition_by", "cluster_by"])
def test_an_empty_list_of_columns_conflicts_with_nothing(write_sink, parse, field):
    other = "cluster_by" if field == "partition_by" else "partition_by"
    sink = parse(write_sink(f"table: out, {field}: [a], {other}: []")).sinks[0]
    assert getattr(sink, field) == ("a",)


@pytest.mark.parametrize("field", ["partition_by", "cluster_by"])
def test_a_column_that_is_named_twice_is_refused(write_sink, problem_of, field):
    assert field in problem_of(write_sink(f"table: out, {field}: [day, Day]"))


def test_a_column_without_brackets_is_told_to_be_a_list(write_sink, problem_of):
    problem = problem_of(write_sink("table: out, partition_by: day"))
    assert problem.startswith("sinks[0].partition_by (line 3): ")
    assert "list" in problem
    assert problem.endswith("; found 'day'")


@pytest.mark.parametrize(
    ("sinks", "problem"),
    [
        ("[{type: delta}]", "sinks[0].table (line 3): is required and missing"),
        (
            "[{table: out}]",
            "sinks[0] (line 3): type is required and missing; allowed are delta, files, jdbc, kafka, python, spark",
        ),
        (
            "[{type: parquet, table: out}]",
            "sinks[0] (line 3): type is 'parquet'; allowed are delta, files, jdbc, kafka, python, spark",
        ),
    ],
)
def test_a_sink_that_is_not_whole_is_told(write, problem_of, sinks, problem):
    assert problem_of(write(sinks=sinks)) == problem


@pytest.mark.parametrize(
    "sinks", ["[]", "", "out", "[out]", "{type: delta, table: out}", "[{type: delta, table: a}, 5]"]
)
def test_sinks_that_are_no_list_of_sinks_are_refused(write, problems_of, sinks):
    assert all(problem.startswith("sinks") for problem in problems_of(write(sinks=sinks)))


def test_several_sinks_have_names_of_their_own(write, parse, problem_of):
    one, two = "{type: delta, table: a}", "{type: delta, table: b, name: two}"
    assert [sink.name for sink in parse(write(sinks=f"[{one}, {two}]")).sinks] == ["main", "two"]
    told = "sinks must have names of their own; more than one is named main"
    unnamed = two.replace(", name: two", "")
    assert told in problem_of(write(sinks=f"[{one}, {unnamed}]"))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("mode: replace", "found 'replace'"),
        ("mode: upsert", "mode upsert needs keys and sequence"),
        ("mode: scd2, keys: id", "mode scd2 needs sequence"),
        ("keys: id", "mode append takes no keys; modes upsert and scd2 do"),
        ("delete_when: x", "mode append takes no delete_when; modes upsert and scd2 do"),
        ("mode: upsert, keys: id, sequence: at, track: x", "track is only for mode scd2"),
        ("valid_from: since", "valid_from is only for mode scd2"),
        ("mode: upsert, keys: id, sequence: at, route_by: x", "route_by is only for mode append"),
        ("mode: upsert, keys: [id, ID], sequence: at", "keys names id more than once"),
        ("columns: [a, A]", "columns names a more than once"),
        (
            "mode: upsert, keys: [id, part], sequence: at, columns: [id, at]",
            "columns leaves out part, which keys names",
        ),
        ("partition_by: [day], columns: [id]", "columns leaves out day, which partition_by names"),
        ("where: ''", "should have at least 1 character"),
    ],
)
def test_a_table_that_would_not_be_right_is_told(write_sink, problem_of, fields, problem):
    assert problem in problem_of(write_sink(f"table: out, {fields}"))


def test_one_column_may_stand_for_a_list_of_them(write_sink, parse):
    (sink,) = parse(write_sink("table: out, mode: scd2, keys: id, sequence: at, track: a")).sinks
    assert (sink.keys, sink.sequence, sink.track) == (("id",), ("at",), ("a",))
    assert sink.history_columns == ("valid_from", "valid_to", "is_current")


def test_a_sink_expects_the_columns_that_it_knows_rows_by(write_sink, parse):
    (sink,) = parse(write_sink("table: out, mode: upsert, keys: [id], sequence: [at]")).sinks
    assert [(rule.label, rule.not_null) for rule in sink.rules] == [
        ("needed_columns", ("id", "at"))
    ]


def test_a_sink_is_hashable_and_frozen():
    sink = DeltaSink(type="delta", table="out")
    assert hash(sink) == hash(DeltaSink(type="delta", table="out"))
    with pytest.raises(ValidationError, match="frozen"):
        sink.table = "elsewhere"


@pytest.mark.parametrize(
    ("sink", "problem"),
    [
        ("{type: kafka}", "sinks[0].topic (line 3): is required and missing"),
        ("{type: kafka, topic: a b}", "must be letters, digits and . _ -, at most 249"),
        ("{type: kafka, topic: t, options: {kafka.acks: 0}}", "must not hold kafka.acks"),
        ("{type: kafka, topic: t, options: {kafka.sasl.password: x}}", "would hold a secret"),
        ("{type: delta, table: out, name: quarantine}", "name must not be 'quarantine'"),
    ],
)
def test_a_sink_that_would_not_be_right_is_told(write, problem_of, sink, problem):
    assert problem in problem_of(write(sinks=f"[{sink}]"))
