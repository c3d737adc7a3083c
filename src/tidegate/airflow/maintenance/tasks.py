"""The tasks of maintenance: what there is to do, done by a driver, and state, which needs none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException

from tidegate.airflow.driver import DriverOperator
from tidegate.core.errors import SpecError
from tidegate.core.lineage import Lineage, Surveyor
from tidegate.core.maintenance.clean import clean_state
from tidegate.core.maintenance.plan import Planner
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import choose_pipelines, load_pipeline
from tidegate.core.submission import prepare_maintenance


class PlanMaintenanceOperator(BaseOperator):
    """Looks at all tables, and gives the pipelines with something to do to the tasks that do it."""

    ui_color = "#d7ecf5"

    def __init__(self, *, home: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.home = home

    def execute(self, context: Context) -> list[str]:  # noqa: ARG002
        """Say what there is to do, and why."""
        try:
            plans = Planner.load(_find_settings(self.home)).plan()
        except SpecError as error:
            raise AirflowFailException(str(error)) from error
        for plan in plans:
            for line in plan.describe():
                self.log.info("%s: %s", plan.pipeline, line)
        return [plan.pipeline for plan in plans if plan.has_work]


class MaintainOperator(DriverOperator):
    """Does what there is to do for the tables of one pipeline."""

    def __init__(self, *, home: str, pipeline_name: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.home = home
        self.pipeline_name = pipeline_name

    def execute(self, context: Context) -> None:
        """Submit a driver for them."""
        settings = _find_settings(self.home)
        pipeline = load_pipeline(settings.pipelines, self.pipeline_name).require()
        self.take(pipeline, prepare_maintenance(pipeline, settings))
        self.start(context, pipeline, settings)

    def survey_lineage(self, surveyor: Surveyor, context: Context) -> Lineage:  # noqa: ARG002
        """Find from where to where rows were taken: nowhere."""
        return Lineage()


class CleanOperator(BaseOperator):
    """Clears away what pipelines keep beside their tables and no longer need."""

    ui_color = "#cfe8cf"

    def __init__(self, *, home: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.home = home

    def execute(self, context: Context) -> dict[str, dict[str, int]]:  # noqa: ARG002
        """Clear it away, and say what it was."""
        settings = _find_settings(self.home)
        done = {}
        for pipeline in choose_pipelines(settings.pipelines, None):
            cleaned = clean_state(pipeline, settings)
            for line in cleaned.describe():
                self.log.info("%s: %s", pipeline.name, line)
            if cleaned.counts:
                done[pipeline.name] = cleaned.counts
        return done


def _find_settings(home: str) -> Settings:
    return Settings.from_environment(Path(home))
