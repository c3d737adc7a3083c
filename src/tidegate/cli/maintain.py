"""`tidegate maintain`: tables and state tidied up, by hand."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate.cli.run import submit
from tidegate.core.errors import MaintenanceError, SubmitError
from tidegate.core.maintenance.clean import clean_state
from tidegate.core.maintenance.plan import PipelinePlan, Planner
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import choose_pipelines, load_pipeline
from tidegate.core.submission import prepare_maintenance, require_jars


def maintain(
    name: Annotated[
        str | None, typer.Argument(help="The pipeline; all where none is named.")
    ] = None,
    master: Annotated[
        str, typer.Option(envvar="TIDEGATE_MASTER", help="Spark's master.")
    ] = "local[*]",
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")
    ] = False,
) -> None:
    """Tidy up tables and state by the policies of the specs; no JVM starts for nothing."""
    settings = Settings.from_environment()
    plans = Planner.load(settings).plan(name)
    for plan in plans:
        for line in plan.describe():
            print(f"{plan.pipeline}: {line}", flush=True)
    for pipeline in choose_pipelines(settings.pipelines, name):
        for line in clean_state(pipeline, settings, is_dry=dry_run).describe():
            print(f"{pipeline.name}: {line}", flush=True)
    if dry_run:
        print("Nothing was done.")
        return
    _submit_all([plan for plan in plans if plan.has_work], settings, master)


def _submit_all(plans: list[PipelinePlan], settings: Settings, master: str) -> None:
    """Start a driver for each pipeline with something to do; one that fails stops no other."""
    failed = []
    if plans:
        require_jars(settings)
    for plan in plans:
        pipeline = load_pipeline(settings.pipelines, plan.pipeline).require()
        try:
            submit(prepare_maintenance(pipeline, settings), master)
        except SubmitError as error:
            failed.append(f"{plan.pipeline}: {error.fact}")
    if failed:
        raise MaintenanceError(
            " ".join(failed),
            remedy="The reasons are in the lines above that begin with 'tidegate:'.",
        )
