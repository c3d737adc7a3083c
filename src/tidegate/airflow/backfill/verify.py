"""The last task of a backfill: whether it all adds up."""

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseOperator, Context, TriggerRule
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tidegate.airflow.backfill.begun import Begun
from tidegate.core.backfill.report import render
from tidegate.core.backfill.verification import verify
from tidegate.core.errors import BackfillError


class VerifyOperator(BaseOperator):
    """Holds what was read against what became of it, also where slices failed, and shows it."""

    ui_color = "#cfe8cf"

    def __init__(self, *, home: str, **kwargs: Any) -> None:
        super().__init__(trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS, **kwargs)
        self.home = home

    def execute(self, context: Context) -> dict[str, Any]:
        """Show the table, and fail where it does not add up."""
        begun = Begun.find(context, self.home)
        if begun is None:
            raise AirflowSkipException("It was a dry run.")
        verification = verify(begun.book, begun.backfill)
        for line in render(verification).splitlines():
            self.log.info("%s", line)
        if verification.problems:
            error = BackfillError(*verification.problems)
            raise AirflowFailException(f"{error} Clear the slices that failed to go on with them.")
        return verification.to_json()
