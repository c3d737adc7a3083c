"""The tasks of a backfill that start a driver: one for each slice, and one that swaps the range."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowException

from tidegate.airflow.backfill.begun import Begun
from tidegate.airflow.backfill.turn import TurnTrigger
from tidegate.airflow.driver import DriverOperator
from tidegate.core.backfill.lanes import Lanes
from tidegate.core.backfill.progress import Progress
from tidegate.core.submission import prepare_backfill

_LONGEST_WAIT = timedelta(days=7)


class SliceOperator(DriverOperator):
    """Runs one slice, as soon as fewer than asked for are run."""

    def __init__(self, *, home: str, part: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.home = home
        self.part = part

    def execute(self, context: Context) -> Any:
        """Run the slice, unless it is done; where all lanes are taken, wait without a worker."""
        begun, number = Begun.require(context, self.home), int(self.part["number"])
        if begun.book.read_slice(begun.backfill.id, number) is None:
            self._run(context, begun, number)
        progress = Progress.of(begun.book, begun.backfill)
        self.log.info("%s", progress.describe())
        done = begun.book.read_slice(begun.backfill.id, number)
        if done is None:
            raise AirflowException("The driver ended without a word of what became of the slice.")
        return {
            "slice": self.part["label"],
            "rows_read": done.rows_read,
            "written": done.written,
            "quarantined": done.quarantined,
            "seconds": done.seconds,
            "progress": progress.describe(),
        }

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Try again: a lane was free a moment ago."""
        self.log.info("The trigger says: %s", event["reason"])
        return self.execute(context)

    def _run(self, context: Context, begun: Begun, number: int) -> None:
        folder = begun.book.folder_of(begun.backfill.id)
        lanes = Lanes(folder, begun.backfill.parallelism)
        with lanes.enter(number, begun.settings.lease_seconds) as is_let_in:
            if is_let_in:
                self.take(
                    begun.pipeline,
                    prepare_backfill(begun.pipeline, begun.settings, begun.backfill.id, [number]),
                )
                self.start(context, begun.pipeline, begun.settings)
                return
        self.log.info("%d slices are run already; waiting for one to end", lanes.count)
        self.defer(
            trigger=TurnTrigger(folder=str(folder), lanes=lanes.count, number=number),
            method_name="execute_complete",
            timeout=_LONGEST_WAIT,
        )


class SwapOperator(DriverOperator):
    """Swaps the range in each table by one commit, once all slices are done."""

    def __init__(self, *, home: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.home = home

    def execute(self, context: Context) -> None:
        """Swap, unless it was done or there is nothing to swap."""
        begun = Begun.require(context, self.home)
        if begun.book.is_finished(begun.backfill):
            # Not skipped: what follows would be skipped with it.
            self.log.info("There is nothing to swap, or it was swapped before.")
            return
        self.take(
            begun.pipeline, prepare_backfill(begun.pipeline, begun.settings, begun.backfill.id)
        )
        self.start(context, begun.pipeline, begun.settings)
