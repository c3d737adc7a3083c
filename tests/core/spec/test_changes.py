import pytest

from tidegate.core.spec.transform import ChangesStep


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("{changes: debezium}", ChangesStep(changes="debezium")),
        (
            "{changes: debezium, sequence: source.lsn}",
            ChangesStep(changes="debezium", sequence="source.lsn"),
        ),
        ("{changes: delta}", ChangesStep(changes="delta")),
    ],
)
def test_a_step_of_changes_from_yaml_equals_one_built_in_python(write, parse, step, expected):
    assert parse(write(f"transform: [{step}]")).transform == (expected,)


@pytest.mark.parametrize(
    ("step", "place", "told"),
    [
        (
            "{changes: delta, sequence: ts_ms}",
            "",
            "sequence is only for changes debezium: those of a Delta table have versions",
        ),
        (
            "{changes: mysql}",
            ".changes",
            "Input should be 'debezium' or 'delta'; found 'mysql'",
        ),
        (
            "{changes: debezium, sequenz: x}",
            ".sequenz",
            "unknown key; did you mean sequence? allowed are changes, sequence",
        ),
        ("{changes: debezium, sql: SELECT 1}", ".changes", "unknown key; allowed are sql"),
    ],
)
def test_a_step_of_changes_that_is_wrong_is_told(write, problem_of, step, place, told):
    assert problem_of(write(f"transform: {step}")) == f"transform[0]{place} (line 4): {told}"


@pytest.mark.parametrize("sequence", ["''", "5", "[a]"])
def test_a_sequence_that_is_no_text_is_refused(write, problem_of, sequence):
    step = f"{{changes: debezium, sequence: {sequence}}}"
    assert problem_of(write(f"transform: {step}")).startswith("transform[0].sequence (line 4): ")


def test_a_step_of_changes_is_hashable():
    assert hash(ChangesStep(changes="delta")) == hash(ChangesStep(changes="delta"))
