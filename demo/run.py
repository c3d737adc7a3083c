"""`make demo`: the medallion once through a real Airflow, with a table at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from demo.api import AirflowApi, DagRun
from demo.data import land_orders
from demo.display import Display
from demo.stack import Stack, StackError, find_stack, start_stack
from tidegate.cli.status import render_status
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import load_pipeline
from tidegate.core.status import read_status

CHAIN = ("orders_bronze", "orders_silver", "orders_gold")
_RUN_TIMEOUT_SECONDS = 900
_DAGS_TIMEOUT_SECONDS = 120
_ASSET_TIMEOUT_SECONDS = 60
_POLL_SECONDS = 0.5


def main() -> int:
    """Run the demo."""
    console = Console()
    settings = Settings.from_environment()
    landing = Path(settings.data) / "landing" / "orders"
    if not landing.exists():
        console.print(f"landed {len(land_orders(Path(settings.data)))} files in {landing}")
    began = time.monotonic()
    try:
        with _have_airflow(settings, console) as stack:
            runs = _run_chain(AirflowApi(stack.url), console)
    except StackError as error:
        console.print(str(error), style="red", markup=False)
        return 1
    _print_result(settings, runs, console, time.monotonic() - began)
    return 0 if all(run.state == "success" for run in runs) else 1


@contextmanager
def _have_airflow(settings: Settings, console: Console) -> Iterator[Stack]:
    running = find_stack(settings)
    if running:
        console.print(f"using the Airflow at {running.url}")
        yield running
        return
    began = time.monotonic()
    with console.status("starting Airflow: API server, scheduler, DAG processor, triggerer"):
        stack = start_stack(settings)
    console.print(f"Airflow is up after {time.monotonic() - began:.0f} s at {stack.url}")
    try:
        yield stack
    finally:
        with console.status("stopping Airflow"):
            stack.stop()


def _run_chain(api: AirflowApi, console: Console) -> list[DagRun]:
    _await_dags(api)
    before = {dag_id: set(api.list_runs(dag_id)) for dag_id in CHAIN}
    runs: list[DagRun] = []
    with Display(CHAIN, console) as display:
        for dag_id in CHAIN:
            if runs and runs[-1].has_committed:
                run_id = _await_asset_run(api, dag_id, before[dag_id], runs[-1])
            else:
                run_id = api.trigger(dag_id)
            runs.append(_follow(api, dag_id, run_id, display))
            if runs[-1].state == "failed":
                break
    for run in runs:
        _explain_failure(api, run, console)
    return runs


def _await_dags(api: AirflowApi) -> None:
    deadline = time.monotonic() + _DAGS_TIMEOUT_SECONDS
    while not set(CHAIN) <= api.list_dags():
        if time.monotonic() > deadline:
            errors = "\n".join(api.list_import_errors()) or "Airflow reports no import error."
            raise StackError(f"The DAGs {', '.join(CHAIN)} did not appear in Airflow. {errors}")
        time.sleep(_POLL_SECONDS)


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


def _follow(api: AirflowApi, dag_id: str, run_id: str, display: Display) -> DagRun:
    deadline = time.monotonic() + _RUN_TIMEOUT_SECONDS
    while True:
        run = api.read_run(dag_id, run_id)
        display.show(run)
        if run.is_finished:
            return run
        if time.monotonic() > deadline:
            raise StackError(f"{dag_id} did not finish in {_RUN_TIMEOUT_SECONDS} s: {run.tasks}")
        time.sleep(_POLL_SECONDS)


def _explain_failure(api: AirflowApi, run: DagRun, console: Console) -> None:
    for task_id, state in run.tasks.items():
        if state == "failed":
            console.print(f"{run.dag_id}.{task_id} failed; its log ends:", style="red")
            console.print(api.read_log(run, task_id), markup=False, highlight=False)


def _print_result(settings: Settings, runs: list[DagRun], console: Console, seconds: float) -> None:
    pipelines = [load_pipeline(settings.pipelines, dag_id).require() for dag_id in CHAIN]
    console.print(render_status(read_status(pipeline, settings) for pipeline in pipelines))
    jvms = sum(run.has_submitted for run in runs)
    by_asset = sum(run.run_type == "asset_triggered" for run in runs)
    console.print(
        f"{len(runs)} runs, {by_asset} of them started by asset events, "
        f"{jvms or 'no'} JVM{'s' if jvms != 1 else ''} started, {seconds:.0f} s in all"
    )
    console.print("next: [b]make data[/] lands more files, [b]make up[/] shows Airflow's UI")


if __name__ == "__main__":
    sys.exit(main())
