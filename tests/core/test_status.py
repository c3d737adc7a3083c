"""Pipelines in the order that rows flow through them, and how each stands."""

import pytest

from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.ledger import Attempt, Decision, Outcome, Plan, Run, Stop
from tidegate.core.spec import Pipeline
from tidegate.core.status import RunState, order_by_flow, tell_state
from tidegate.core.target import FilesTarget


def pipeline(name: str, *after: str) -> Pipeline:
    source = {"type": "rate", "rows_per_batch": 1}
    sinks = [{"type": "delta", "table": name}]
    return Pipeline.model_validate({"name": name, "source": source, "sinks": sinks, "after": after})


@pytest.mark.parametrize(
    ("flows", "expected"),
    [
        ([], []),
        ([("gold", "silver"), ("bronze",), ("silver", "bronze")], ["bronze", "silver", "gold"]),
        ([("b",), ("a",)], ["a", "b"]),
        ([("c", "a", "b"), ("b", "a"), ("a",)], ["a", "b", "c"]),
        ([("a", "elsewhere"), ("b",)], ["b", "a"]),
    ],
)
def test_pipelines_come_after_what_they_read(flows, expected):
    ordered = order_by_flow([pipeline(*flow) for flow in flows])
    assert [p.name for p in ordered] == expected


@pytest.mark.parametrize(
    ("stop", "state"),
    [
        (None, RunState.SHORT),
        (Stop("budget.max_batches of 1 is used up", 0), RunState.COMMITTED),
        (Stop("budget.max_batches of 2 is used up", 1), RunState.SHORT),
    ],
)
def test_a_run_that_used_its_budget_up_is_well(local_checkpoint, stop, state):
    local_checkpoint.batches(1)
    target = FilesTarget(("/landing/0.json", "/landing/1.json"))
    plan = Plan("run", Decision.RUN, "2 files to read", "2026-01-01T00:00:00+00:00", target=target)
    now = "2026-01-01T00:01:00+00:00"
    run = Run(plan, Attempt(Outcome.SUCCEEDED, now, now, stop=stop))
    found, _ = tell_state(run, read_progress(local_checkpoint.path), local_checkpoint.path)
    assert found is state
