import pytest

from tidegate.core.spec.sinks.delta import DeltaSink

KEYED = "table: out, keys: id, sequence: [at, n]"


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ("", ("valid_from", "valid_to", "is_current")),
        (", valid_from: since, valid_to: until, current: now", ("since", "until", "now")),
    ],
)
def test_a_history_has_columns_of_the_names_that_are_asked_for(write_sink, parse, fields, names):
    sink = parse(write_sink(f"{KEYED}, mode: scd2{fields}")).sinks[0]
    assert sink.history_columns == names
    assert (sink.keys, sink.sequence) == (("id",), ("at", "n"))


def test_a_history_whose_columns_are_one_is_refused(write_sink, problem_of):
    problem = problem_of(write_sink(f"{KEYED}, mode: scd2, valid_from: x, valid_to: X"))
    assert problem == ("sinks[0] (line 3): the history names x more than once; Spark ignores case")


def test_a_history_may_be_laid_out_by_its_own_columns(write_sink, parse):
    fields = f"{KEYED}, mode: scd2, columns: [id, at, n], partition_by: [is_current]"
    assert parse(write_sink(fields)).sinks[0].partition_by == ("is_current",)


@pytest.mark.parametrize("field", ["keys", "sequence", "track", "partition_by", "cluster_by"])
@pytest.mark.parametrize("value", ["5", "{a: b}", "[[x]]", "true"])
def test_junk_beside_columns_is_told(write_sink, problems_of, field, value):
    given = {"keys": "[id]", "sequence": "[at]"} | {field: value}
    fields = ", ".join(f"{name}: {text}" for name, text in given.items())
    assert problems_of(write_sink(f"table: out, mode: scd2, columns: [id, at], {fields}"))


def test_each_route_is_a_writer_of_its_own():
    sink = DeltaSink(type="delta", table="out", name="s")
    assert sink.name_writer("q") == "q:s"
    assert sink.name_writer("q", "de") == "q:s:de"
