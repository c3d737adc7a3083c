"""Rows held against rules: counted, left out, put aside, or the end of the run."""

import json

import pytest

from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import ExpectationError, SinkError, TransformError
from tidegate.spark.failure import describe_failure
from tidegate.spark.runner import run_pipeline

FILES = {
    "type": "files",
    "path": "landing",
    "format": "json",
    "schema": "id long, amount double, name string",
    "max_files_per_trigger": 1,
    "malformed": "drop",
}
POSITIVE = {"name": "positive", "check": "amount > 0"}


@pytest.fixture
def land(settings):
    """Land a file of rows (id, amount, name)."""
    folder = settings.locate("landing")
    folder.mkdir(parents=True)

    def write(name, *rows):
        lines = (json.dumps(dict(zip(("id", "amount", "name"), row, strict=True))) for row in rows)
        (folder / name).write_text("\n".join(lines))

    return write


ROWS = ((1, 5.0, "a"), (2, -1.0, "b"), (3, None, "c"), (4, 2.0, None))


@pytest.mark.parametrize(
    ("on_fail", "kept", "aside"),
    [("warn", [1, 2, 3, 4], 0), ("drop", [1, 4], 0), ("quarantine", [1, 4], 2)],
)
def test_rows_that_fail_are_counted_and_kept_dropped_or_put_aside(
    runs, pipeline_of, land, rows_of, on_fail, kept, aside
):
    land("a.json", *ROWS)
    run = runs.run(pipeline_of(FILES, expect=[{**POSITIVE, "on_fail": on_fail}]))
    assert rows_of("out", "id") == [(number,) for number in kept]
    assert run.summary.failed == {"positive": 2}
    assert run.summary.quarantined == aside


def test_a_row_that_is_put_aside_says_what_it_was_why_and_where_it_came_from(
    runs, pipeline_of, land, rows_of
):
    land("a.json", *ROWS)
    run = runs.run(pipeline_of(FILES, expect=[POSITIVE, {"not_null": ["amount", "name"]}]))
    kept = rows_of("quarantine/p", "row", "rule", "reason", "sink", "run_id", "batch_id", "file")
    told = [(json.loads(row[0])["id"], *row[1:3]) for row in kept]
    assert sorted(told) == [
        (2, "positive", "not amount > 0"),
        (3, "positive", "not amount > 0; amount, name must not be null"),
        (4, "not_null_amount_name", "amount, name must not be null"),
    ]
    assert {row[3:6] for row in kept} == {(None, run.plan.run_id, 0)}
    assert all(row[6].endswith("/landing/a.json") for row in kept)
    assert run.summary.failed == {"positive": 2, "not_null_amount_name": 2}
    assert run.summary.quarantined == 3


def test_a_row_is_put_aside_by_a_rule_that_does_so(runs, pipeline_of, land, rows_of):
    land("a.json", *ROWS)
    rules = [{**POSITIVE, "on_fail": "warn"}, {"not_null": ["amount"]}]
    runs.run(pipeline_of(FILES, expect=rules))
    told = rows_of("quarantine/p", "rule", "reason")
    assert told == [("not_null_amount", "not amount > 0; amount must not be null")]


def test_of_rows_that_are_not_unique_one_goes_on(runs, pipeline_of, land, rows_of):
    land("a.json", (1, 1.0, "b"), (1, 1.0, "a"), (2, 1.0, "x"), (None, 1.0, "n"), (None, 1.0, "m"))
    run = runs.run(pipeline_of(FILES, expect=[{"unique": ["id"]}]))
    assert rows_of("out", "id", "name") == [(None, "m"), (None, "n"), (1, "a"), (2, "x")]
    assert run.summary.failed == {"unique_id": 1}


def test_one_row_can_stop_the_run_and_nothing_of_its_batch_is_written(
    runs, pipeline_of, land, settings
):
    land("a.json", *ROWS)
    pipeline = pipeline_of(FILES, expect=[{**POSITIVE, "on_fail": "fail"}])
    plan = runs.plan(pipeline)
    with pytest.raises(Exception, match="a row fails positive") as raised:
        run_pipeline(pipeline, settings, plan.run_id)
    told = describe_failure(raised.value)
    assert "tidegate: a row fails positive: _file file:" in told
    assert "/landing/a.json." in told
    assert "amount" not in told
    assert DeltaLog(settings.locate("out")).find_version() is None


@pytest.mark.parametrize(("share", "is_refused"), [("50%", False), ("49.9%", True)])
def test_a_share_of_failing_rows_can_stop_the_run(
    runs, pipeline_of, land, settings, share, is_refused
):
    land("a.json", *ROWS)
    pipeline = pipeline_of(FILES, expect=[{**POSITIVE, "fail_above": share}])
    if not is_refused:
        assert runs.run(pipeline).summary.quarantined == 2
        return
    told = r"positive fails for 2 of 4 rows, above 49\.90%.*Nothing of it was written"
    with pytest.raises(ExpectationError, match=told):
        runs.run(pipeline)
    assert not settings.locate("out").exists()


def test_a_batch_that_is_replayed_counts_and_puts_aside_the_same(
    runs, pipeline_of, land, rows_of, settings, monkeypatch
):
    from tidegate.spark.quarantine import Quarantine

    land("a.json", *ROWS)
    pipeline = pipeline_of(FILES, expect=[POSITIVE])
    plan = runs.plan(pipeline)

    def die(*_):
        raise SinkError("The machine went away.")

    with monkeypatch.context() as patch:
        patch.setattr(Quarantine, "write", die)
        with pytest.raises(SinkError):
            run_pipeline(pipeline, settings, plan.run_id)
    assert len(rows_of("out")) == 2
    run_pipeline(pipeline, settings, plan.run_id)
    run = runs.ledger(pipeline).read_run(plan.run_id)
    assert (run.summary.failed, run.summary.quarantined) == ({"positive": 2}, 2)
    assert (len(rows_of("out")), len(rows_of("quarantine/p"))) == (2, 2)


def test_rows_that_differ_each_time_they_are_made_are_kept_or_put_aside_but_not_both(
    runs, pipeline_of, land, rows_of
):
    land("a.json", *((number, 1.0, "x") for number in range(200)))
    chance = {"sql": "SELECT id, rand() AS chance FROM input"}
    rule = {"name": "likely", "check": "chance > 0.5"}
    run = runs.run(pipeline_of(FILES, transform=chance, expect=[rule]))
    kept = {row[0] for row in rows_of("out", "id")}
    aside = {json.loads(row[0])["id"] for row in rows_of("quarantine/p", "row")}
    assert kept | aside == set(range(200))
    assert not kept & aside
    assert run.summary.failed == {"likely": len(aside)}


def test_rules_that_are_no_sql_on_the_rows_are_told_all_at_once(runs, pipeline_of, land, settings):
    land("a.json", *ROWS)
    rules = [{"name": "a", "check": "nope > 0"}, {"name": "b", "check": "amount +"}]
    rules += [{"name": "c", "check": "amount"}, {"not_null": ["gone"]}]
    with pytest.raises(TransformError) as raised:
        runs.run(pipeline_of(FILES, expect=rules))
    told = str(raised.value)
    for part in ("a: [UNRESOLVED_COLUMN", "b: [PARSE_SYNTAX_ERROR]", "c: (amount) is double"):
        assert part in told
    assert "not_null_gone: [UNRESOLVED_COLUMN" in told
    assert "columns id, amount, name, _file" in told
    assert not settings.locate("out").exists()
