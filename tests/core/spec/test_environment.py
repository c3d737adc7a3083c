import pytest

from tidegate.core.spec.environment import expand
from tidegate.core.spec.loader import parse_pipeline

VARIABLES = {"A": "1", "LONG_name_2": "x", "EMPTY": "", "REFERENCE": "${A}"}


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("${A}", "1"),
        ("a/${A}/b${A}", "a/1/b1"),
        ("${LONG_name_2}", "x"),
        ("${A:-9}", "1"),
        ("${B:-9}", "9"),
        ("${B:-}", ""),
        ("${B:-a:b/c d}", "a:b/c d"),
        ("${EMPTY}", ""),
        ("$$", "$"),
        ("$${A}", "${A}"),
        ("$$${A}", "$1"),
        ("$A costs 5$", "$A costs 5$"),
        ("no reference", "no reference"),
        ("${REFERENCE}", "${A}"),
    ],
)
def test_a_reference_is_filled_in(text, expanded):
    assert expand(text, VARIABLES) == (expanded, [])


def test_a_variable_that_is_set_but_empty_takes_the_default_as_in_a_shell():
    assert expand("${EMPTY:-9}", VARIABLES) == ("9", [])


def test_an_unset_variable_without_a_default_is_a_problem():
    _, problems = expand("${B}", VARIABLES)
    assert problems == [((), "the variable B is not set; set it, or write ${B:-default}")]


@pytest.mark.parametrize("text", ["${}", "${ A }", "${A-9}", "${1A}", "${A B}", "${:-x}"])
def test_a_reference_that_is_misspelt_is_a_problem(text):
    _, problems = expand(text, VARIABLES)
    assert problems == [((), f"{text!r} is not ${{VAR}} or ${{VAR:-default}}")]


@pytest.mark.parametrize("text", ["${A", "${A:9}", "${A:?unset}", "${B:-${A}}", "x ${"])
def test_a_reference_that_cannot_be_read_is_a_problem_and_not_text(text):
    _, problems = expand(text, VARIABLES)
    assert [place for place, _ in problems] == [()]


def test_references_are_filled_in_however_deep_they_are():
    value = {"a": ["${A}", {"b": ["${A}x"]}], "n": 5, "none": None, "yes": True}
    assert expand(value, VARIABLES) == (
        {"a": ["1", {"b": ["1x"]}], "n": 5, "none": None, "yes": True},
        [],
    )


def test_keys_are_left_as_they_are():
    assert expand({"${A}": "${A}"}, VARIABLES) == ({"${A}": "1"}, [])


def test_every_problem_is_told_by_its_place():
    _, problems = expand({"a": ["ok", "${X}"], "b": {"c": "${Y} and ${Z}"}}, {})
    assert [place for place, _ in problems] == [("a", 1), ("b", "c"), ("b", "c")]


def test_what_is_given_is_not_changed():
    value = {"a": ["${A}"]}
    expand(value, VARIABLES)
    assert value == {"a": ["${A}"]}


def test_a_spec_is_filled_in_from_the_environment(write, parse):
    text = write(
        "tags: [x, '${TAG}']",
        "retries: ${RETRIES}",
        "transform: [{sql: 'SELECT ${COLUMN:-id} FROM input'}]",
        sinks="[{type: delta, table: '${ROOT}/out'}]",
    )
    pipeline = parse(text, TAG="y", RETRIES="7", ROOT="s3://bucket")
    assert pipeline.tags == ("x", "y")
    assert pipeline.retries == 7
    assert pipeline.transform[0].sql == "SELECT id FROM input"
    assert pipeline.sinks[0].table == "s3://bucket/out"


def test_the_process_environment_is_the_default(write, monkeypatch):
    monkeypatch.setenv("TIDEGATE_TEST_OWNER", "sales")
    assert parse_pipeline(write("owner: ${TIDEGATE_TEST_OWNER}")).owner == "sales"


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("owner: ${X}", "owner (line 4)"),
        ("tags: [a, '${X}']", "tags[1] (line 4)"),
        ("spark: {spark.x: '${X}'}", "spark.spark.x (line 4)"),
        ("transform:\n  - sql: SELECT ${X}", "transform[0].sql (line 5)"),
        ("retries: ${X}", "retries (line 4)"),
        ("retry_delay: ${X}", "retry_delay (line 4)"),
    ],
)
def test_an_unset_variable_is_told_once_with_its_line(write, problem_of, line, place):
    assert problem_of(write(line)) == (
        f"{place}: the variable X is not set; set it, or write ${{X:-default}}"
    )


def test_what_a_variable_holds_is_checked_like_text(write, problem_of):
    assert problem_of(write(name="${NAME}"), NAME="../x").startswith("name (line 1): ")


def test_what_a_variable_holds_cannot_add_fields(write, parse):
    pipeline = parse(write("owner: ${OWNER}"), OWNER="a\nretries: 9")
    assert (pipeline.owner, pipeline.retries) == ("a\nretries: 9", 2)
