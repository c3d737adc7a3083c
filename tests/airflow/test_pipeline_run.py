"""Whole DAGs in one process: real tasks, real spark-submit."""

from pathlib import Path

import pytest

from tidegate.core.ledger import Ledger

RULES = [{"name": "small", "check": "id < 100"}]


@pytest.fixture
def landing(settings) -> Path:
    folder = Path(settings.data) / "landing"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def run_dag(dag_bag):
    """Run a DAG and return its run, the states of its tasks, and a reader of their XComs."""

    def run(name: str = "p"):
        result = dag_bag().dags[name].test()
        tasks = {task.task_id: task for task in result.get_task_instances()}
        states = {task_id: str(task.state) for task_id, task in tasks.items()}
        return result, states, lambda task_id, key: tasks[task_id].xcom_pull(task_id, key=key)

    return run


def test_a_run_commits_its_target_and_then_is_idle(write_spec, landing, run_dag, settings, capsys):
    write_spec(expect=RULES)
    (landing / "a.json").write_text('{"id": 1}\n{"id": 2}\n')
    (landing / "b.json").write_text('{"id": 3}\n{"id": 400}\n')
    result, states, _ = run_dag()
    assert states == {"plan": "success", "submit": "success", "confirm": "success"}
    told = [line for line in capsys.readouterr().out.splitlines() if "SubmitOperator]" in line]
    assert "batch 0: 2 rows read (file log 0), 2 rows in v0, " in told[-2]
    assert "batch 1: 2 rows read (file log 1), 1 rows in v1, 1 fail small, " in told[-1]
    event = read_event(result.run_id)
    assert event.extra["batches"] == [0, 1]
    assert event.extra["rows"] == 3
    assert (event.extra["expectations"], event.extra["quarantined"]) == ({"small": 1}, 1)
    assert event.extra["offsets"] == {"0": {"logOffset": 1}}
    assert event.extra["table_versions"] == {"main": 1}
    assert event.extra["run_id"] == result.run_id

    result, states, _ = run_dag()
    assert states == {"plan": "success", "submit": "skipped", "confirm": "skipped"}
    assert str(result.state) == "success"
    run = Ledger.beside(settings.state_of("p")).read_run(result.run_id)
    assert run.plan.decision == "idle"
    assert run.attempt is None


def read_event(run_id):
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session

    with create_session() as session:
        return session.query(AssetEvent).filter_by(source_run_id=run_id).one_or_none()


def test_what_a_run_committed_and_could_not_announce_is_announced_by_the_next(
    write_spec, landing, run_dag, settings, monkeypatch
):
    from airflow.sdk.exceptions import AirflowFailException

    from tidegate.airflow.sensor import ConfirmSensor

    def die(self, context):
        raise AirflowFailException("The machine went away.")

    write_spec(retries=0, expect=RULES)
    (landing / "a.json").write_text('{"id": 1}\n{"id": 2}\n')
    with monkeypatch.context() as patch:
        patch.setattr(ConfirmSensor, "execute", die)
        result, states, _ = run_dag()
    assert states == {"plan": "success", "submit": "success", "confirm": "failed"}
    assert read_event(result.run_id) is None
    # As if the driver had been killed right after its commit, too.
    (Path(settings.state) / "p/runs/batches/0.json").unlink()

    result, states, _ = run_dag()
    assert states == {"plan": "success", "submit": "skipped", "confirm": "success"}
    told = read_event(result.run_id).extra
    assert (told["batches"], told["rows"], told["input_rows"]) == ([0], 2, None)
    assert (told["expectations"], told["quarantined"]) == (None, None)
    assert told["table_versions"] == {"main": 0}

    result, states, _ = run_dag()
    assert states == {"plan": "success", "submit": "skipped", "confirm": "skipped"}
    assert read_event(result.run_id) is None


def test_a_driver_that_dies_without_a_word_is_recorded_as_failed(
    write_spec, landing, run_dag, settings
):
    write_spec(retries=0, transform={"python": "dying:die"})
    (settings.pipelines / "dying.py").write_text(
        "import os, signal\n\n\ndef die(df, context):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    (landing / "a.json").write_text('{"id": 1}\n')
    result, states, _ = run_dag()
    assert states == {"plan": "success", "submit": "failed", "confirm": "upstream_failed"}
    attempt = Ledger.beside(settings.state_of("p")).read_attempt(result.run_id)
    assert attempt.outcome == "failed"
    assert "it was killed, or it never began" in attempt.error


def test_a_missing_landing_zone_is_blocked_and_not_tried_again(write_spec, run_dag, settings):
    write_spec(retries=3)
    result, states, _ = run_dag()
    assert states == {"plan": "failed", "submit": "upstream_failed", "confirm": "upstream_failed"}
    plan = Ledger.beside(settings.state_of("p")).read_run(result.run_id).plan
    assert plan.decision == "blocked"
    assert "does not exist. Create the folder" in plan.reason


def test_a_job_that_ends_short_of_its_target_fails_in_confirm(
    write_spec, landing, run_dag, monkeypatch, caplog
):
    from tidegate.airflow.submit import SubmitOperator

    write_spec(retries=0)
    (landing / "a.json").write_text('{"id": 1}\n')
    submit = SubmitOperator.execute

    def take_the_file_away_and_submit(self, context):
        (landing / "a.json").rename(landing / "_a.json")
        submit(self, context)

    monkeypatch.setattr(SubmitOperator, "execute", take_the_file_away_and_submit)
    _, states, _ = run_dag()
    assert states == {"plan": "success", "submit": "success", "confirm": "failed"}


def test_a_failing_driver_ends_its_log_with_one_clear_line(
    write_spec, landing, run_dag, settings, deployment
):
    write_spec(retries=0, transform={"sql": "SELECT nothing FROM input"})
    (landing / "a.json").write_text('{"id": 1}\n')
    result, states, _ = run_dag()
    assert states == {"plan": "success", "submit": "failed", "confirm": "upstream_failed"}
    attempt = Ledger.beside(settings.state_of("p")).read_run(result.run_id).attempt
    assert attempt.outcome == "failed"
    assert "Step 1 of p is not valid SQL" in attempt.error
    assert not settings.checkpoint_of("p").exists()


@pytest.mark.parametrize(
    ("connection", "message"),
    [(None, "There is no connection"), ('{"conn_type": "spark"}', "has no host")],
)
def test_a_connection_without_a_master_is_told_before_a_jvm_starts(
    write_spec, landing, dag_bag, monkeypatch, connection, message
):
    from airflow.sdk.exceptions import AirflowFailException

    write_spec(spark_connection="elsewhere")
    (landing / "a.json").write_text('{"id": 1}\n')
    if connection:
        monkeypatch.setenv("AIRFLOW_CONN_ELSEWHERE", connection)
    with pytest.raises(AirflowFailException, match=message):
        dag_bag().dags["p"].get_task("submit").execute({})
