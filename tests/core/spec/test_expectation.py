import pytest

from tidegate.core.spec.expectation import Expectation, OnFail


@pytest.fixture
def write_rule(write):
    """Write a spec with one expectation, in flow style."""
    return lambda fields: write(f"expect: [{{{fields}}}]")


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ("name: positive, check: amount > 0", "positive"),
        ("not_null: [Id, day]", "not_null_id_day"),
        ("unique: [id]", "unique_id"),
        ("name: once, unique: [id]", "once"),
    ],
)
def test_a_rule_has_a_name_to_be_counted_by(write_rule, parse, fields, label):
    (rule,) = parse(write_rule(fields)).expect
    assert (rule.label, rule.on_fail) == (label, OnFail.QUARANTINE)


@pytest.mark.parametrize(
    ("share", "expected"),
    [("1%", 0.01), ("'0.5 %'", 0.005), ("100%", 1.0), ("7%", 0.07), ("0.05", 0.05), ("0%", 0)],
)
def test_a_share_is_written_in_percent_or_as_a_part_of_one(write_rule, parse, share, expected):
    (rule,) = parse(write_rule(f"unique: [id], on_fail: warn, fail_above: {share}")).expect
    assert rule.fail_above == expected
    assert Expectation.model_validate(rule.model_dump(mode="json")) == rule


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("name: a", "needs exactly one of check, not_null and unique"),
        ("not_null: [a], unique: [a]", "needs exactly one of check, not_null and unique"),
        ("check: a > 0", "check needs a name to be counted by"),
        ("name: a b, not_null: [a]", "must be lower-case letters"),
        ("not_null: []", "must have at least one item"),
        ("not_null: [a], on_fail: ignore", "found 'ignore'"),
        ("not_null: [a], on_fail: fail, fail_above: 1%", "so fail_above must go"),
        *(
            (
                f"not_null: [a], fail_above: {share}",
                "must be a share of the rows: percent as 1% or 0.5%, or between 0 and 1",
            )
            for share in ("1", "101%", "1.0", "5.0", "0.0", "-0.1", "true", ".nan", "'0.5'")
        ),
        ("not_null: [a], nope: 1", "expect[0].nope (line 4): unknown key; allowed are check, fail"),
    ],
)
def test_a_rule_that_cannot_be_right_is_told(write_rule, problem_of, fields, problem):
    assert problem in problem_of(write_rule(fields))


def test_a_rule_of_a_sink_is_told_by_its_place(write_sink, problem_of):
    problem = problem_of(write_sink("table: out, expect: [{check: a}]"))
    assert problem.startswith("sinks[0].expect[0] (line 3): check needs a name")


@pytest.mark.parametrize("place", ["pipeline", "sink"])
def test_two_rules_of_one_name_are_refused(write, write_sink, problem_of, place):
    rules = "expect: [{unique: [id]}, {unique: [ID]}]"
    text = write(rules) if place == "pipeline" else write_sink(f"table: out, {rules}")
    assert "expect has more than one rule named unique_id" in problem_of(text)
