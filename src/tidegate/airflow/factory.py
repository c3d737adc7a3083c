"""One DAG per spec: plan, submit, confirm."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG, AssetAny, get_parsing_context

from tidegate.airflow.asset import describe_schedule, pipeline_asset
from tidegate.airflow.plan import PlanOperator
from tidegate.airflow.sensor import ConfirmSensor
from tidegate.airflow.submit import SubmitOperator
from tidegate.core.errors import SpecError
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import load_pipeline, load_specs
from tidegate.core.spec.pipeline import Pipeline


def build_dags(home: Path) -> dict[str, DAG]:
    """Build a DAG for every spec that has no mistake, by name."""
    settings = Settings.from_environment(home)
    # A task's process needs one DAG only; building all of them would cost it seconds.
    wanted = get_parsing_context().dag_id
    try:
        specs = (
            [load_pipeline(settings.pipelines, wanted)]
            if wanted
            else load_specs(settings.pipelines)
        )
    except SpecError:
        specs = []  # shown by raise_spec_errors
    return {
        spec.name: build_dag(spec.require(), settings, spec.text)
        for spec in specs
        if not spec.error
    }


def raise_spec_errors(home: Path) -> None:
    """Raise the mistakes of all broken specs, for a DAG file that exists to show them."""
    settings = Settings.from_environment(home)
    errors = [spec.error for spec in load_specs(settings.pipelines) if spec.error]
    if errors:
        raise RefusedSpecsError(errors)


class RefusedSpecsError(Exception):
    """All broken specs of a folder; raised as one so that Airflow shows them all."""

    def __init__(self, errors: list[SpecError]) -> None:
        count = f"{len(errors)} spec{'s are' if len(errors) > 1 else ' is'}"
        super().__init__(f"{count} refused:\n\n" + "\n\n".join(str(error) for error in errors))


def build_dag(pipeline: Pipeline, settings: Settings, text: str) -> DAG:
    """Build a pipeline's DAG."""
    dag = DAG(
        dag_id=pipeline.name,
        description=pipeline.description,
        doc_md=_render_docs(pipeline, text),
        schedule=(
            AssetAny(*map(pipeline_asset, pipeline.after)) if pipeline.after else pipeline.schedule
        ),
        start_date=pipeline.start_date,
        catchup=False,
        max_active_runs=1,
        tags=["tidegate", *pipeline.tags],
        default_args={
            "owner": pipeline.owner,
            "retries": pipeline.retries,
            "retry_delay": pipeline.retry_delay,
            "pool": pipeline.pool,
        },
    )
    with dag:
        plan = PlanOperator(task_id="plan", pipeline=pipeline, settings=settings)
        submit = SubmitOperator(task_id="submit", pipeline=pipeline, settings=settings)
        confirm = ConfirmSensor(task_id="confirm", pipeline=pipeline, settings=settings)
        plan >> submit >> confirm
    return dag


def _render_docs(pipeline: Pipeline, text: str) -> str:
    return (
        f"{pipeline.description}\n\nRuns {describe_schedule(pipeline)}.\n\n"
        f"```yaml\n{text.strip()}\n```\n"
    )
