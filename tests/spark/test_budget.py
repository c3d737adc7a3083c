"""A backlog that runs work off within their budget, each from where the last one stopped."""

import json

import pytest

from tidegate.core.condition import Verdict
from tidegate.core.ledger import Decision, Stop
from tidegate.core.spec.budget import Budget
from tidegate.spark.allowance import Allowance, BudgetSpentError
from tidegate.spark.runner import run_pipeline

FILES = {
    "type": "files",
    "path": "landing",
    "format": "json",
    "schema": "id long",
    "max_files_per_trigger": 1,
    "provenance": False,
    "malformed": "fail",
}
BACKLOG = 100


@pytest.fixture
def land(settings):
    folder = settings.locate("landing")
    folder.mkdir(parents=True)

    def write(count):
        for number in range(count):
            (folder / f"{number}.json").write_text(json.dumps({"id": number}))

    return write


@pytest.mark.timeout(600)
def test_a_backlog_is_worked_off_by_as_many_runs_as_the_budget_takes(
    runs, pipeline_of, settings, land, rows_of
):
    pipeline = pipeline_of(FILES, budget={"max_batches": 40})
    land(BACKLOG)
    did, stops = [], []
    for _ in range(3):
        plan = runs.plan(pipeline)
        assert plan.decision is Decision.RUN
        run_pipeline(pipeline, settings, plan.run_id)
        judgement = runs.judge(pipeline, plan)
        assert judgement.verdict is Verdict.REACHED, judgement.reason
        run = runs.ledger(pipeline).read_run(plan.run_id)
        did.append(len(run.batches))
        stops.append(judgement.reason if run.attempt.stop else None)
        assert rows_of("out", "id") == sorted(set(rows_of("out", "id")))
    assert did == [40, 40, 20]
    spent = "budget.max_batches of 40 is used up; the next run goes on"
    assert stops == [spent, spent, None]
    assert rows_of("out", "id") == [(number,) for number in range(BACKLOG)]
    assert runs.plan(pipeline).decision is Decision.IDLE


def test_no_batch_is_begun_after_so_many_minutes():
    minutes = iter([0, 5, 7])
    allowance = Allowance(Budget(max_minutes=6), lambda: next(minutes) * 60)
    for batch in (7, 8):  # the first one is never too late
        allowance.take(batch)
    with pytest.raises(BudgetSpentError) as spent:
        allowance.take(9)
    reason = "budget.max_minutes of 6 are used up, after 2 batches"
    assert spent.value.stop == Stop(reason, batch_id=8)
