"""The DAG that looks at all pipelines, and tells what is beyond their rules."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, BaseOperator, Context

from tidegate.airflow.connection import read_airflow_connection
from tidegate.airflow.notifier import Notifiers, find_link
from tidegate.core.alerts.channels import NOTIFY, read_channels
from tidegate.core.alerts.telling import require_told
from tidegate.core.alerts.watch import Sighting, Watch
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import load_specs

ALERTS = "alerts"
SCHEDULE = "TIDEGATE_ALERTS_SCHEDULE"

_EVERY_FIVE_MINUTES = "*/5 * * * *"
_OFF = "off"
_DOCS = f"""
Looks at every pipeline without a JVM, and tells what is beyond the rules of its spec: each incident
once, and once more when it is over. A message that could not be delivered is tried again. Who is told
is `alerts.notify` of a spec, or else `{NOTIFY}`. How often is `{SCHEDULE}`, a cron expression or
`{_OFF}`.
"""


def build_alerts_dag(home: Path) -> DAG:
    """Build the DAG of alerts."""
    settings = Settings.from_environment(home)
    schedule = os.environ.get(SCHEDULE) or _EVERY_FIVE_MINUTES
    with DAG(
        dag_id=ALERTS,
        description="Tells what is beyond the rules of the pipelines.",
        doc_md=_DOCS,
        schedule=None if schedule == _OFF else schedule,
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,  # one that waits to be turned on would tell nobody
        tags=["tidegate"],
        default_args={"retries": 2, "retry_delay": timedelta(seconds=30)},
    ) as dag:
        AlertsOperator(task_id="tell", settings=settings, execution_timeout=timedelta(minutes=15))
    return dag


class AlertsOperator(BaseOperator):
    """Looks at all pipelines, and tells what is new and what is over."""

    ui_color = "#f5e3d7"

    def __init__(self, *, settings: Settings, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.settings = settings

    def execute(self, context: Context) -> None:  # noqa: ARG002
        """Look, and tell; fail where somebody could not be told, so that it is tried again."""
        specs = load_specs(self.settings.pipelines)
        watch = Watch(self.settings, read_channels(), read_airflow_connection)
        failures: list[str] = []
        for seen in watch.look(specs):
            self._log_alerts(seen)
            try:
                told = watch.settle(seen, Notifiers(self.settings).deliver, find_link)
            except Exception as error:
                # What is wrong with one pipeline's incidents keeps no other's from being told.
                failures.append(f"{seen.pipeline}: {error}")
                continue
            failures += told.failures
            for message in told.told:
                self.log.info("told: %s", message.subject)
        require_told(failures)

    def _log_alerts(self, seen: Sighting) -> None:
        for alert in seen.alerts:
            self.log.warning("%s: %s: %s", seen.pipeline, alert.rule, alert.fact)
        if seen.alerts and not seen.channels:
            self.log.warning("%s: nobody is told; set alerts.notify or %s", seen.pipeline, NOTIFY)
