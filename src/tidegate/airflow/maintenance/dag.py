"""The DAG of maintenance: one for all pipelines, once a day."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG

from tidegate.airflow.maintenance.tasks import (
    CleanOperator,
    MaintainOperator,
    PlanMaintenanceOperator,
)
from tidegate.core.settings import Settings

MAINTENANCE = "maintenance"

_SCHEDULE = "TIDEGATE_MAINTENANCE_SCHEDULE"
_AT_ONCE = 2
_DOCS = f"""
Tidies up the tables of all pipelines, and what is kept beside them, by the policies of their specs.

`plan` looks at every table without a JVM and says in its log what there is to do, and why. `maintain` has
a task for each pipeline with something to do: OPTIMIZE, VACUUM, the table's log. A file that a lagging
reader still needs is kept, and the log says for whom. `clean` clears away old runs, backfills and litter.

The DAG is paused until somebody turns it on, since VACUUM deletes files. It runs once a day, or as
`{_SCHEDULE}` says, a cron expression or a preset; `none` means by hand.
"""


def build_maintenance_dag(home: Path) -> DAG:
    """Build the DAG of maintenance."""
    settings = Settings.from_environment(home)
    with DAG(
        dag_id=MAINTENANCE,
        description="Tidies up tables and state.",
        doc_md=_DOCS,
        schedule=_read_schedule(),
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=True,
        tags=["tidegate"],
        default_args={"retries": 1, "retry_delay": timedelta(minutes=5)},
    ) as dag:
        where = str(settings.home)
        plan = PlanMaintenanceOperator(task_id="plan", home=where)
        MaintainOperator.partial(
            task_id="maintain",
            home=where,
            map_index_template="{{ task.pipeline_name }}",
            max_active_tis_per_dag=_AT_ONCE,
        ).expand(pipeline_name=plan.output)
        CleanOperator(task_id="clean", home=where)
    return dag


def _read_schedule() -> str | None:
    said = os.environ.get(_SCHEDULE) or "@daily"
    return None if said.lower() == "none" else said
