"""The DAG that takes up again what was put aside, started by hand."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Context, Param
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tidegate.airflow.driver import DriverOperator
from tidegate.airflow.form import TIME, choose_pipeline, list_pipelines
from tidegate.core.errors import ReplayError, TidegateError
from tidegate.core.lineage import Lineage, Surveyor
from tidegate.core.replay import Replay, ReplayRequest, Replays
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import load_pipeline
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.submission import prepare_replay

REPLAY = "replay"

_TEXT = {"type": ["null", "string"]}
_DOCS = """
Takes up again what a pipeline put aside, once its spec is put right: values are decoded anew and go
through the steps, rows go through the rules, and what is let through now is written once. What fails
again is put aside again. Without a rule, a run or a time, everything is taken up; a replay that was
not finished is gone on with first.
"""


def build_replay_dag(home: Path) -> DAG:
    """Build the DAG of replays."""
    settings = Settings.from_environment(home)
    with DAG(
        dag_id=REPLAY,
        description="Takes up again what was put aside.",
        doc_md=_DOCS,
        schedule=None,
        catchup=False,
        tags=["tidegate"],
        params={
            "pipeline": choose_pipeline(list_pipelines(settings), ReplayRequest),
            "rule": _field("rule", _TEXT),
            "run": _field("run", _TEXT),
            "since": _field("since", TIME),
            "until": _field("until", TIME),
        },
        default_args={"retries": 2, "retry_delay": timedelta(seconds=15)},
    ) as dag:
        ReplayOperator(task_id="replay", settings=settings)
    return dag


class ReplayOperator(DriverOperator):
    """Takes up again what was put aside, or goes on with it."""

    def __init__(self, *, settings: Settings, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.settings = settings

    def execute(self, context: Context) -> Any:
        """Find what is meant, start a driver, and say what became of it."""
        try:
            pipeline, begun = self._begin(context["params"])
        except TidegateError as error:
            raise AirflowFailException(str(error)) from error
        if begun is None:
            raise AirflowSkipException("Nothing of the kind was put aside.")
        self.log.info("%s takes %s rows, %s", begun.id, begun.rows, begun.choice.describe())
        self.take(pipeline, prepare_replay(pipeline, self.settings, begun.id))
        self.start(context, pipeline, self.settings)
        result = Replays(pipeline, self.settings).read(begun.id).result
        if result is None:
            raise ReplayError(f"The replay {begun.id} ended without a result.")
        for line in result.describe():
            self.log.info("%s", line)
        return {"id": begun.id, "written": result.written, "put_aside": result.put_aside}

    def survey_lineage(self, surveyor: Surveyor, context: Context) -> Lineage:  # noqa: ARG002
        """Find from where to where rows were taken: from what was put aside."""
        return surveyor.survey_replay()

    def _begin(self, params: Any) -> tuple[Pipeline, Replay | None]:
        request = ReplayRequest.parse(params)
        pipeline = load_pipeline(self.settings.pipelines, request.pipeline).require()
        return pipeline, Replays(pipeline, self.settings).begin(request.choice)


def _field(name: str, schema: dict[str, Any]) -> Param:
    described = ReplayRequest.model_fields[name].description
    return Param(default=None, title=name, description=described, **schema)
