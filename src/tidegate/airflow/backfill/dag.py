"""The DAG of backfills: one for all pipelines, started by hand."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG

from tidegate.airflow.backfill.begun import PLAN
from tidegate.airflow.backfill.form import list_fields
from tidegate.airflow.backfill.plan import PlanBackfillOperator
from tidegate.airflow.backfill.verify import VerifyOperator
from tidegate.airflow.backfill.work import SliceOperator, SwapOperator
from tidegate.airflow.form import list_pipelines
from tidegate.core.settings import Settings

BACKFILL = "backfill"

_DOCS = """
Reads a range of a pipeline's source once more, through the same steps, rules and sinks, while live
runs go on. Fill in the pipeline, a mode and one kind of range:

| source | range |
|---|---|
| Kafka | `offsets`, or `since` and `until` |
| Delta | `first_version` and `last_version`, or `since` and `until` |
| files | `glob` (with `since` and `until` for times of modification), or `paths` |

`plan` checks everything and says what will be done; with `dry run`, that is all. Each slice is a task:
one that failed is cleared by itself, and one that is done is never run again. `verify` shows what
became of every row, and fails where it does not add up.
"""


def build_backfill_dag(home: Path) -> DAG:
    """Build the DAG of backfills."""
    settings = Settings.from_environment(home)
    with DAG(
        dag_id=BACKFILL,
        description="Reads a range of a source once more, by hand.",
        doc_md=_DOCS,
        schedule=None,
        catchup=False,
        max_active_runs=16,
        tags=["tidegate"],
        params=list_fields(list_pipelines(settings)),
        default_args={"retries": 2, "retry_delay": timedelta(seconds=15)},
    ) as dag:
        where = str(settings.home)
        plan = PlanBackfillOperator(task_id=PLAN, settings=settings)
        slices = SliceOperator.partial(
            task_id="slice", home=where, map_index_template="{{ task.part['label'] }}"
        ).expand(part=plan.output)
        swap = SwapOperator(task_id="swap", home=where)
        verify = VerifyOperator(task_id="verify", home=where)
        plan >> slices >> swap >> verify
        [plan, slices] >> verify
    return dag
