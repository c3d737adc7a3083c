"""Waiting for something to be so."""

import time
from collections.abc import Callable
from typing import TypeVar

import httpx

Found = TypeVar("Found")


def wait_for(find: Callable[[], Found], timeout_seconds: float) -> Found:
    """Wait until something is found."""
    deadline = time.monotonic() + timeout_seconds
    while not (found := find()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.3)
    return found


def run_dag(api: httpx.Client, dag_id: str, timeout_seconds: float = 600) -> None:
    """Run a DAG that must succeed."""
    answer = api.post(f"/dags/{dag_id}/dagRuns", json={"logical_date": None})
    assert answer.is_success, answer.text
    state = await_end(api, dag_id, answer.json()["dag_run_id"], timeout_seconds)
    assert state == "success", dag_id


def await_end(api: httpx.Client, dag_id: str, run_id: str, timeout_seconds: float) -> str:
    """Wait for the end of a run, and tell its state."""

    def find_end() -> str | None:
        state = api.get(f"/dags/{dag_id}/dagRuns/{run_id}").json()["state"]
        return state if state in ("success", "failed") else None

    return str(wait_for(find_end, timeout_seconds))
