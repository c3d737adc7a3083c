"""The submit task: a planned run by spark-submit."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Context

from tidegate.airflow.driver import DriverOperator, spell_submission
from tidegate.core.ledger import Ledger
from tidegate.core.lineage import Lineage, Surveyor
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.submission import prepare_submission, record_silent_end


class SubmitOperator(DriverOperator):
    """Runs a planned pipeline."""

    def __init__(self, *, pipeline: Pipeline, settings: Settings, **kwargs: Any) -> None:
        submission = prepare_submission(pipeline, settings, "{{ run_id }}", "{{ ti.try_number }}")
        super().__init__(**spell_submission(pipeline, submission), **kwargs)
        self.pipeline = pipeline
        self.settings = settings

    def execute(self, context: Context) -> None:
        """Submit the run."""
        self.start(context, self.pipeline, self.settings)

    def survey_lineage(self, surveyor: Surveyor, context: Context) -> Lineage:
        """Find from where to where the run took rows, and how many."""
        ledger = Ledger.beside(self.settings.state_of(self.pipeline.name))
        return surveyor.survey(ledger.read_run(context["run_id"]).batches)

    def run_driver(self, context: Context) -> None:
        """Call spark-submit, and record the end of a driver that could not do so itself."""
        try:
            super().run_driver(context)
        except Exception:
            tried = str(context["ti"].try_number)
            record_silent_end(self.settings, self.pipeline.name, context["run_id"], tried)
            raise
