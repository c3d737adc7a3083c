"""DAGs one after the other through a real Airflow: the first by hand, the others by asset events."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console

from demo.api import AirflowApi, DagRun
from demo.display import Display
from demo.stack import Stack, StackError, find_stack, start_stack
from tidegate.cli.status import render_status
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import load_pipeline
from tidegate.core.status import read_status

_RUN_TIMEOUT_SECONDS = 900
_DAGS_TIMEOUT_SECONDS = 120
_ASSET_TIMEOUT_SECONDS = 60
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Chain:
    """Pipelines, each of which reads what the one before it writes."""

    dag_ids: tuple[str, ...]
    settings: Settings
    console: Console
    environment: Mapping[str, str] | None = None
    """Variables for Airflow beyond the usual ones."""
    tell: Callable[[], str] = lambda: ""
    """What to show beside the tasks while they work."""

    def run(self) -> list[DagRun]:
        """Run all of them, in an Airflow that runs already or in one for just this."""
        with self._have_airflow() as stack, AirflowApi(stack.url) as api:
            return self._run_in(api)

    def print_result(self, runs: list[DagRun], seconds: float) -> None:
        """Print where every pipeline stands, and what it took."""
        specs = [load_pipeline(self.settings.pipelines, dag_id) for dag_id in self.dag_ids]
        rows = (read_status(spec.require(), self.settings) for spec in specs)
        self.console.print(render_status(rows))
        jvms = sum(run.has_submitted for run in runs)
        by_asset = sum(run.run_type == "asset_triggered" for run in runs)
        self.console.print(
            f"{len(runs)} runs, {by_asset} of them started by asset events, "
            f"{jvms or 'no'} JVM{'s' if jvms != 1 else ''} started, {seconds:.0f} s in all"
        )

    @contextmanager
    def _have_airflow(self) -> Iterator[Stack]:
        running = find_stack(self.settings)
        if running:
            self.console.print(f"using the Airflow at {running.url}")
            yield running
            return
        began = time.monotonic()
        starting = "starting Airflow: API server, scheduler, DAG processor, triggerer"
        with self.console.status(starting):
            stack = start_stack(self.settings, self.environment or {})
        elapsed = time.monotonic() - began
        self.console.print(f"Airflow is up after {elapsed:.0f} s at {stack.url}")
        try:
            yield stack
        finally:
            with self.console.status("stopping Airflow"):
                stack.stop()

    def _run_in(self, api: AirflowApi) -> list[DagRun]:
        self._await_dags(api)
        before = {dag_id: set(api.list_runs(dag_id)) for dag_id in self.dag_ids}
        runs: list[DagRun] = []
        with Display(self.dag_ids, self.console) as display:
            for dag_id in self.dag_ids:
                if runs and runs[-1].has_committed:
                    run_id = _await_asset_run(api, dag_id, before[dag_id], runs[-1])
                else:
                    run_id = api.trigger(dag_id)
                runs.append(self._follow(api, dag_id, run_id, display))
                if runs[-1].state == "failed":
                    break
        for run in runs:
            self._explain_failure(api, run)
        return runs

    def _await_dags(self, api: AirflowApi) -> None:
        deadline = time.monotonic() + _DAGS_TIMEOUT_SECONDS
        while not set(self.dag_ids) <= api.list_dags():
            if time.monotonic() > deadline:
                errors = "\n".join(api.list_import_errors()) or "Airflow reports no import error."
                named = ", ".join(self.dag_ids)
                raise StackError(f"The DAGs {named} did not appear in Airflow. {errors}")
            time.sleep(_POLL_SECONDS)

    def _follow(self, api: AirflowApi, dag_id: str, run_id: str, display: Display) -> DagRun:
        deadline = time.monotonic() + _RUN_TIMEOUT_SECONDS
        while True:
            run = api.read_run(dag_id, run_id)
            display.show(run, self.tell())
            if run.is_finished:
                return run
            if time.monotonic() > deadline:
                raise StackError(
                    f"{dag_id} did not finish in {_RUN_TIMEOUT_SECONDS} s: {run.tasks}"
                )
            time.sleep(_POLL_SECONDS)

    def _explain_failure(self, api: AirflowApi, run: DagRun) -> None:
        for task_id, state in run.tasks.items():
            if state == "failed":
                self.console.print(f"{run.dag_id}.{task_id} failed; its log ends:", style="red")
                self.console.print(api.read_log(run, task_id), markup=False, highlight=False)


def _await_asset_run(api: AirflowApi, dag_id: str, before: set[str], upstream: DagRun) -> str:
    """Wait for the run that the upstream's asset event starts."""
    deadline = time.monotonic() + _ASSET_TIMEOUT_SECONDS
    while True:
        fresh = [run_id for run_id in api.list_runs(dag_id) if run_id not in before]
        started = [run_id for run_id in fresh if run_id.startswith("asset_triggered")]
        if started:
            return started[0]
        if time.monotonic() > deadline:
            raise StackError(
                f"{upstream.dag_id} committed, but its asset event started no run of {dag_id}."
            )
        time.sleep(_POLL_SECONDS)
