"""The first task of a backfill: everything that was filled in is checked, told and written down."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowFailException

from tidegate.airflow.backfill.begun import BEGUN
from tidegate.airflow.backfill.form import DRY_RUN
from tidegate.airflow.connection import read_airflow_connection
from tidegate.core.backfill.book import Backfill, Backfills
from tidegate.core.backfill.proposal import propose
from tidegate.core.backfill.range import count
from tidegate.core.backfill.request import parse_request
from tidegate.core.errors import SourceAwayError, TidegateError
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import load_specs


class PlanBackfillOperator(BaseOperator):
    """Begins a backfill, and gives its slices to the tasks that run them; none for a dry run."""

    ui_color = "#d7ecf5"

    def __init__(self, *, settings: Settings, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.settings = settings

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Find what was asked for, say what will be done, and begin."""
        asked = {key: value for key, value in context["params"].items() if key != DRY_RUN}
        is_dry = bool(context["params"].get(DRY_RUN))
        try:
            begun = None if is_dry else self._find_begun(asked, context["run_id"])
            if begun is None:
                begun = self._begin(asked, None if is_dry else context["run_id"])
        except SourceAwayError:
            raise  # it may come back, so this is tried again
        except TidegateError as error:
            raise AirflowFailException(str(error)) from error
        if begun is None:
            self.log.info("Nothing was done: it is a dry run. Trigger it again without.")
            return []
        context["ti"].xcom_push(key=BEGUN, value={"pipeline": asked["pipeline"], "id": begun.id})
        whole = len(begun.slices)
        return [
            {"number": number, "label": f"{number + 1} of {whole}: {part.describe()}"}
            for number, part in enumerate(begun.slices)
        ]

    def _find_begun(self, asked: dict[str, Any], run_id: str) -> Backfill | None:
        """Find what this run began before it was cleared."""
        request, pipeline = parse_request(asked, load_specs(self.settings.pipelines))
        begun = Backfills(pipeline, self.settings).find_named(run_id, request)
        if begun:
            self.log.info("This run began %s before, and goes on with it.", begun.id)
        return begun

    def _begin(self, asked: dict[str, Any], name: str | None) -> Backfill | None:
        proposal = propose(asked, self.settings, read_airflow_connection)
        for line in proposal.describe():
            self.log.info("%s", line)
        if name is None:
            return None
        begun = proposal.begin(name)
        self.log.info("%s: %s, %s", asked["pipeline"], begun.id, count(len(begun.slices), "slice"))
        return begun
