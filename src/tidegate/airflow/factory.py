"""One DAG per spec: plan, submit, confirm."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG, AssetAny, Param, get_parsing_context

from tidegate.airflow.asset import describe_schedule, pipeline_asset
from tidegate.airflow.failure import FailureCallback
from tidegate.airflow.page import locate_page
from tidegate.airflow.plan import ACCEPT_DATA_LOSS, PlanOperator
from tidegate.airflow.sensor import ConfirmSensor
from tidegate.airflow.submit import SubmitOperator
from tidegate.core.errors import SpecError
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import LoadedSpec, load_pipeline, load_specs
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
    built = {spec.name: _build(spec, settings) for spec in specs}
    return {name: dag for name, dag in built.items() if isinstance(dag, DAG)}


def raise_spec_errors(home: Path) -> None:
    """Raise the mistakes of all broken specs, for a DAG file that exists to show them."""
    settings = Settings.from_environment(home)
    built = [_build(spec, settings) for spec in load_specs(settings.pipelines)]
    errors = [error for error in built if isinstance(error, SpecError)]
    if errors:
        raise RefusedSpecsError(errors)


class RefusedSpecsError(Exception):
    """All broken specs of a folder; raised as one so that Airflow shows them all."""

    def __init__(self, errors: list[SpecError]) -> None:
        count = f"{len(errors)} spec{'s are' if len(errors) > 1 else ' is'}"
        super().__init__(f"{count} refused:\n\n" + "\n\n".join(str(error) for error in errors))


def _build(spec: LoadedSpec, settings: Settings) -> DAG | SpecError:
    """Build a spec's DAG, or tell why not: one spec never stops the others."""
    try:
        return build_dag(spec.require(), settings, spec.text)
    except SpecError as error:
        return error
    except Exception as error:
        return SpecError(str(spec.file), (f"Airflow refuses it: {error}",))


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
        auto_register=False,  # a DAG file that only looks for mistakes must not offer it
        tags=["tidegate", *pipeline.tags],
        params=_list_params(pipeline),
        default_args={
            "owner": pipeline.owner,
            "retries": pipeline.retries,
            "retry_delay": pipeline.retry_delay,
            "pool": pipeline.pool,
            "on_failure_callback": FailureCallback(pipeline, settings),
        },
    )
    with dag:
        plan = PlanOperator(task_id="plan", pipeline=pipeline, settings=settings)
        submit = SubmitOperator(task_id="submit", pipeline=pipeline, settings=settings)
        confirm = ConfirmSensor(task_id="confirm", pipeline=pipeline, settings=settings)
        plan >> submit >> confirm
    return dag


def _list_params(pipeline: Pipeline) -> dict[str, Param]:
    if not pipeline.kafka_inputs:
        return {}
    return {
        ACCEPT_DATA_LOSS: Param(
            default=False,
            type="boolean",
            title="Accept data loss",
            description="Give up records that expired before they were read, and read on.",
        )
    }


def _render_docs(pipeline: Pipeline, text: str) -> str:
    return (
        f"{pipeline.description}\n\nRuns {describe_schedule(pipeline)}. "
        f"[Its batches, lag and health]({locate_page(pipeline.name)})\n\n"
        f"```yaml\n{text.strip()}\n```\n"
    )
