"""The few calls of Airflow's REST API that the demo needs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

import httpx

FINISHED = frozenset({"success", "failed"})


@dataclass(frozen=True)
class DagRun:
    """One run of a DAG, with its tasks' states."""

    dag_id: str
    run_id: str
    state: str
    run_type: str
    tasks: dict[str, str]

    @property
    def is_finished(self) -> bool:
        """Whether nothing of it will change any more."""
        return self.state in FINISHED

    @property
    def has_submitted(self) -> bool:
        """Whether it started a JVM."""
        return self.tasks.get("submit") in ("running", "success", "failed", "up_for_retry")

    @property
    def has_committed(self) -> bool:
        """Whether it confirmed a commit, and so sent an asset event."""
        return self.tasks.get("confirm") == "success"


class AirflowApi:
    """Airflow's REST API, as an administrator of the demo."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=f"{url}/api/v2", timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._http.close()

    def list_dags(self) -> set[str]:
        """List the DAGs that Airflow knows."""
        return {dag["dag_id"] for dag in self._get("/dags")["dags"]}

    def list_import_errors(self) -> list[str]:
        """List what did not import."""
        return [error["stack_trace"] for error in self._get("/importErrors")["import_errors"]]

    def trigger(self, dag_id: str) -> str:
        """Trigger a DAG and return the id of its run."""
        now = datetime.now(UTC).isoformat()
        answer = self._http.post(f"/dags/{dag_id}/dagRuns", json={"logical_date": now})
        answer.raise_for_status()
        return str(answer.json()["dag_run_id"])

    def read_run(self, dag_id: str, run_id: str) -> DagRun:
        """Read one run and its tasks."""
        base = f"/dags/{dag_id}/dagRuns/{run_id}"
        return self._build(self._get(base), self._get(f"{base}/taskInstances"))

    def list_runs(self, dag_id: str) -> list[str]:
        """List the ids of a DAG's newest runs."""
        answer = self._get(f"/dags/{dag_id}/dagRuns", order_by="-run_after", limit=50)
        return [run["dag_run_id"] for run in answer["dag_runs"]]

    def read_log(self, run: DagRun, task_id: str, lines: int = 30) -> str:
        """Read the end of a task's log."""
        tries = self._get(f"/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances/{task_id}")
        answer = self._http.get(
            f"/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances/{task_id}"
            f"/logs/{tries['try_number']}",
            headers={"Accept": "application/x-ndjson"},
        )
        events = [json.loads(line).get("event", "") for line in answer.text.splitlines() if line]
        return "\n".join(str(event) for event in events[-lines:])

    def _get(self, path: str, **params: str | int) -> Any:
        answer = self._http.get(path, params=params)
        answer.raise_for_status()
        return answer.json()

    @staticmethod
    def _build(run: dict[str, Any], tasks: dict[str, Any]) -> DagRun:
        return DagRun(
            dag_id=run["dag_id"],
            run_id=run["dag_run_id"],
            state=run["state"],
            run_type=run["run_type"],
            tasks={task["task_id"]: task["state"] or "" for task in tasks["task_instances"]},
        )
