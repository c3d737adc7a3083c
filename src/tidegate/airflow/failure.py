"""Telling at once of a task that failed for good."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from airflow.sdk import Context
from airflow.sdk._shared.secrets_masker import redact

from tidegate.core.alerts.failure import Failure, note_failure
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline


@dataclass(frozen=True)
class FailureCallback:
    """Notes a failed task beside the pipeline's state, and tells of it.

    It runs in the task's own process, or where that is gone in the DAG processor. What it cannot tell
    is told by the DAG of alerts, which reads the same note.
    """

    pipeline: Pipeline
    settings: Settings

    def __call__(self, context: Context) -> None:
        """Note the failure, and tell of it."""
        # Imported here: most tasks never need it.
        from tidegate.airflow.notifier import Notifiers, find_link
        from tidegate.core.alerts.channels import read_channels
        from tidegate.core.alerts.telling import require_told
        from tidegate.core.alerts.watch import Watch

        note_failure(self.settings.state_of(self.pipeline.name), describe_failure(context))
        watch, notifiers = Watch(self.settings, read_channels()), Notifiers(self.settings)
        seen = watch.look_at_run(self.pipeline)
        require_told(watch.settle(seen, notifiers.deliver, find_link).failures)


def describe_failure(context: Context) -> Failure:
    """Describe a task that failed, as its context tells it."""
    task = context["ti"]
    error = context.get("exception") or "the task ended without a word"
    return Failure(
        # As in the task's log: what is told goes further than that.
        reason=str(redact(str(error))),
        at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        run_id=task.run_id,
        task=task.task_id,
        link=task.log_url,
    )
