import json

import pytest

from tidegate.core.ledger import Attempt, BatchRecord, Ledger, Outcome, SinkRecord
from tidegate.core.plan import plan_run
from tidegate.core.spec import load_pipeline


@pytest.fixture
def plan(deployment):
    """Plan a run of a pipeline."""
    return lambda name: plan_run(
        load_pipeline(deployment.pipelines, name).require(), deployment, "run"
    )


@pytest.fixture
def planned(add_spec, plan):
    """A pipeline with a planned run."""
    add_spec("orders")
    plan("orders")
    return "orders"


@pytest.fixture
def end(deployment):
    """Record how a driver's attempt on a run ended."""

    def record(name, outcome, error=None):
        ledger = Ledger.beside(deployment.state_of(name))
        ledger.record_attempt("run", Attempt(outcome, "2026-01-01T00:00:00+00:00", error=error))
        return ledger

    return record


@pytest.fixture
def deployed_two(add_spec, plan, deployment):
    """Two pipelines, and the ledger of the one that sorts first."""
    add_spec("orders")
    add_spec("broken")
    plan("broken")
    return deployment.state_of("broken") / "runs"


@pytest.fixture
def rows(invoke):
    """Run the command, and return what it prints as JSON."""
    return lambda: json.loads(invoke("status", "--json").stdout)


def test_a_pipeline_that_never_ran_says_so(add_spec, rows):
    add_spec("orders")
    assert rows() == [
        {
            "pipeline": "orders",
            "state": "never_ran",
            "run_id": None,
            "reason": "no run was planned yet",
            "warning": None,
            "batches": 0,
            "rows": 0,
            "quarantined": 0,
            "committed_batch": None,
            "committed": "-",
            "table_version": None,
            "seconds": 0.0,
        }
    ]


def test_every_pipeline_has_a_row(add_spec, rows):
    add_spec("b")
    add_spec("a")
    assert [row["pipeline"] for row in rows()] == ["a", "b"]


def test_a_planned_run_is_planned(planned, rows):
    assert [(row["pipeline"], row["state"]) for row in rows()] == [(planned, "planned")]


@pytest.mark.parametrize(
    ("attempt", "told"),
    [
        ((Outcome.RUNNING,), ("running", "a rate source always has more")),
        ((Outcome.FAILED, "it broke"), ("failed", "it broke")),
        ((Outcome.SUCCEEDED,), ("short", "nothing is committed yet")),
    ],
)
def test_an_attempt_tells_the_state(planned, end, rows, attempt, told):
    end(planned, *attempt)
    (row,) = rows()
    assert (row["state"], row["reason"]) == told


def test_a_run_that_reached_its_target_is_committed(planned, end, checkpoint_of, rows):
    checkpoint_of(planned).batch(0, 5)
    sinks = {"main": SinkRecord(4, 1)}
    batch = BatchRecord(0, "run", 5, 1.25, "2026-01-01T00:00:00+00:00", [], sinks)
    end(planned, Outcome.SUCCEEDED).record_batch(batch)
    (row,) = rows()
    assert (row["state"], row["committed_batch"], row["committed"]) == ("committed", 0, "row 5")
    assert (row["batches"], row["rows"]) == (1, 4)


@pytest.mark.parametrize(("count", "told"), [(3, "3"), (None, "?")])
def test_what_was_put_aside_is_told_where_there_is_any(
    planned, end, checkpoint_of, invoke, count, told
):
    assert "quarantined" not in invoke("status").stdout
    checkpoint_of(planned).batch(0, 5)
    sinks = {"main": SinkRecord(4, 1)}
    batch = BatchRecord(0, "run", 5, 1.25, "2026-01-01T00:00:00+00:00", [], sinks, count)
    end(planned, Outcome.SUCCEEDED).record_batch(batch)
    heading, *lines = (
        [cell.strip() for cell in line.replace("┃", "│").split("│")]
        for line in invoke("status").stdout.splitlines()
        if "orders" in line or "pipeline" in line
    )
    assert lines[0][heading.index("quarantined")] == told


def test_a_run_that_is_planned_again_after_an_attempt_took_no_negative_time(
    planned, end, plan, rows
):
    end(planned, Outcome.FAILED, "it broke")
    plan(planned)
    assert rows()[0]["seconds"] >= 0


def test_a_checkpoint_that_is_broken_is_blocked(add_spec, checkpoint_of, rows):
    add_spec("orders")
    checkpoint_of("orders").metadata().write("offsets/0", "")
    (row,) = rows()
    assert row["state"] == "blocked"
    assert "offsets/0 is corrupt" in row["reason"]


def test_the_table_has_a_row_for_each_pipeline(invoke, add_spec):
    add_spec("orders")
    result = invoke("status")
    assert result.exit_code == 0
    table = [
        [cell.strip() for cell in line.split("│")[1:-1]] for line in result.stdout.splitlines()
    ]
    assert ["orders", "never_ran", "0", "0", "-", "-", "0.0"] in table


def test_the_reason_of_an_unhealthy_pipeline_is_below_the_table_in_one_line(
    invoke, add_files_spec, add_spec, plan, deployment
):
    add_files_spec("orders")
    add_spec("healthy")
    plan("orders")
    lines = invoke("status").stdout.splitlines()
    reasons = [line for line in lines if line.startswith(("orders:", "healthy:"))]
    missing = f"The landing zone {deployment.data}/landing does not exist."
    remedy = "Create the folder, or correct source.path in the spec."
    assert reasons == [f"orders: {missing} {remedy}"]


def test_a_reason_with_brackets_is_shown_as_it_is(invoke, planned, end):
    end(planned, Outcome.FAILED, "[/b] [PARSE_ERROR] at [red]x")
    assert "orders: [/b] [PARSE_ERROR] at [red]x" in invoke("status").stdout


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_a_broken_spec_is_told_on_stderr_and_hides_no_other(invoke, add_spec, arguments):
    add_spec("broken", text="name: [")
    add_spec("orders")
    result = invoke("status", *arguments)
    assert "orders" in result.stdout
    assert "invalid" in result.stdout
    assert "broken.yaml has 1 mistake" in result.stdout


def test_a_broken_spec_is_a_row_of_its_own(rows, add_spec):
    add_spec("broken", text="name: [")
    add_spec("orders")
    orders, broken = rows()
    assert (orders["pipeline"], orders["state"]) == ("orders", "never_ran")
    assert (broken["pipeline"], broken["state"]) == ("[", "invalid")
    assert "broken.yaml has 1 mistake" in broken["reason"]


def test_a_spec_that_is_wrong_among_others_only_is_told_like_a_broken_one(rows, add_spec):
    add_spec("lonely", "after: [missing]")
    add_spec("orders")
    orders, lonely = rows()
    assert (orders["state"], lonely["state"]) == ("never_ran", "invalid")
    assert "lonely.yaml has 1 mistake:\n  - after[0] (line 4): there is no pipe" in lonely["reason"]


@pytest.mark.parametrize("file", ["run=run/attempts/2026.json", "latest.json", "batches/0.json"])
@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_broken_ledger_hides_no_other_pipeline(deployed_two, invoke, rows, file, text):
    (deployed_two / file).parent.mkdir(parents=True, exist_ok=True)
    (deployed_two / file).write_text(text)
    assert "orders" in invoke("status").stdout
    broken, other = rows()
    assert (broken["state"], other["state"]) == ("unknown", "never_ran")
    assert (broken["run_id"], broken["batches"], broken["seconds"]) == (None, 0, 0.0)
    assert f"The ledger file {deployed_two / file} is broken: " in broken["reason"]
    assert "Move the file away" in broken["reason"]


def test_a_broken_ledger_is_told_below_the_table(deployed_two, invoke):
    (deployed_two / "latest.json").write_text("{")
    told = f"broken: The ledger file {deployed_two / 'latest.json'} is broken: "
    assert any(line.startswith(told) for line in invoke("status").stdout.splitlines())


def test_where_the_checkpoint_stands_is_told_though_the_ledger_is_broken(
    deployed_two, checkpoint_of, rows
):
    (deployed_two / "latest.json").write_text("{")
    checkpoint_of("broken").batch(0, 5)
    broken, _ = rows()
    assert (broken["state"], broken["committed_batch"]) == ("unknown", 0)
    assert broken["committed"] == "row 5"


def test_the_command_prints_a_table_and_tells_what_is_broken(call, add_spec):
    add_spec("orders")
    add_spec("broken", text="")
    result = call("status")
    assert "│ orders " in result.stdout
    assert "broken.yaml has 1 mistake:\n  - the file holds nothing" in result.stdout
    assert "Traceback" not in result.stderr


def test_a_deployment_without_a_folder_of_specs_is_told(invoke, deployment):
    deployment.pipelines.rmdir()
    assert str(deployment.pipelines) in str(invoke("status").exception)
