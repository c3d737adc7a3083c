"""A backfill that the first task began, as the others find it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from tidegate.core.backfill.book import Backfill, Backfills
from tidegate.core.errors import BackfillError
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import load_pipeline
from tidegate.core.spec.pipeline import Pipeline

PLAN = "plan"
BEGUN = "backfill"


@dataclass(frozen=True)
class Begun:
    """A backfill under way."""

    pipeline: Pipeline
    settings: Settings
    book: Backfills
    backfill: Backfill

    @classmethod
    def find(cls, context: Context, home: str) -> Self | None:
        """Find what the plan began; None where it was a dry run."""
        told = context["ti"].xcom_pull(task_ids=PLAN, key=BEGUN)
        if not told:
            return None
        settings = Settings.from_environment(Path(home))
        pipeline = load_pipeline(settings.pipelines, told["pipeline"]).require()
        book = Backfills(pipeline, settings)
        return cls(pipeline, settings, book, book.read(told["id"]))

    @classmethod
    def require(cls, context: Context, home: str) -> Self:
        """Find what the plan began, which must be something."""
        found = cls.find(context, home)
        if found is None:
            raise AirflowFailException("The plan began nothing; clear it, too.")
        try:
            found.book.refuse_changed(found.backfill)
        except BackfillError as error:
            raise AirflowFailException(str(error)) from error
        return found
