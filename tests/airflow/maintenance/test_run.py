"""The DAG of maintenance in one process: real tasks, real spark-submit."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.delta_table import DeltaTableBuilder
from tidegate.core.ledger import Baseline, BatchRecord, Decision, Ledger, Plan

DAYS_AGO = (datetime.now(UTC) - timedelta(days=100)).isoformat()


@pytest.fixture
def run_dag(dag_bag):
    """Run the DAG, and return the states of its tasks, those of mapped ones by their label."""

    def run() -> dict[str, str]:
        result = dag_bag().dags["maintenance"].test()
        return {
            task.rendered_map_index or task.task_id: str(task.state)
            for task in result.get_task_instances()
        }

    return run


@pytest.fixture
def tables(write_spec, settings) -> dict[str, DeltaTableBuilder]:
    """Two tables, one of them with three small files."""
    for name in ("busy", "quiet"):
        write_spec(name, maintenance={"min_small_files": 2, "keep_batches": 1})
    built = {
        name: DeltaTableBuilder(Path(settings.data) / "out" / name) for name in ("busy", "quiet")
    }
    built["busy"].append().append().append()
    built["quiet"].append()
    return built


@pytest.fixture
def old_batches(settings) -> Ledger:
    ledger = Ledger.beside(settings.state_of("quiet"))
    ledger.open_run(Plan("last", Decision.IDLE, "", DAYS_AGO, baseline=Baseline("q", 2)))
    for batch in range(3):
        ledger.record_batch(BatchRecord(batch, "last", 1, 1.0, DAYS_AGO, [], {}))
    return ledger


@pytest.mark.spark
def test_only_pipelines_with_something_to_do_get_a_driver(tables, old_batches, run_dag, caplog):
    states = run_dag()
    assert states == {"plan": "success", "busy": "success", "clean": "success"}
    assert len(list(tables["busy"].path.glob("*.parquet"))) == 4
    assert [old_batches.read_batch(batch) is None for batch in range(3)] == [True, True, False]

    states = run_dag()
    assert states == {"plan": "success", "maintain": "skipped", "clean": "success"}


def test_it_is_paused_until_somebody_turns_it_on(dag_bag, deployment):
    dag = dag_bag().dags["maintenance"]
    assert dag.is_paused_upon_creation is True
    assert (dag.schedule, dag.catchup, dag.max_active_runs) == ("@daily", False, 1)


@pytest.mark.parametrize(("said", "schedule"), [("0 3 * * 0", "0 3 * * 0"), ("none", None)])
def test_the_environment_may_say_another_schedule(dag_bag, deployment, monkeypatch, said, schedule):
    monkeypatch.setenv("TIDEGATE_MAINTENANCE_SCHEDULE", said)
    assert dag_bag().dags["maintenance"].schedule == schedule
