"""Waiting until a checkpoint's commit log proves something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Asset, BaseSensorOperator, Context, TriggerRule
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tidegate.airflow.asset import pipeline_asset
from tidegate.airflow.metrics import send_commit
from tidegate.airflow.trigger import CheckpointTrigger
from tidegate.core.condition import (
    BatchAtLeast,
    CommittedWithin,
    Condition,
    Covers,
    Judgement,
    NothingPending,
    RunReached,
    Verdict,
    WatermarkAtLeast,
    dump_conditions,
    judge,
)
from tidegate.core.ledger import Ledger
from tidegate.core.recovery import recover_batches
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.storage import open_path
from tidegate.core.target import Target, parse_target


class CheckpointSensor(BaseSensorOperator):
    """Succeeds when a checkpoint's commit log meets every condition given.

    Works on the checkpoint of any Structured Streaming query, on a local path or any fsspec URL.
    It looks once and then waits in the triggerer, without a worker slot. A checkpoint that is
    corrupt fails it at once. Its XCom, and the event of each asset among its outlets, carry the
    progress.

    :param checkpoint: the query's checkpointLocation (templated)
    :param covers: the committed offsets cover this target, a `FilesTarget`, `DeltaTarget`,
        `KafkaTarget` or `BatchTarget` of `tidegate.core.target`, or its JSON form (templated)
    :param batch_at_least: a batch with at least this id is committed (templated)
    :param nothing_pending: the newest planned batch is committed
    :param committed_within: the newest commit is at most this old
    :param watermark_at_least: the committed watermark is at least this moment, UTC where it names
        no zone (templated)
    """

    template_fields: Sequence[str] = (
        "checkpoint",
        "covers",
        "batch_at_least",
        "watermark_at_least",
    )
    ui_color = "#cfe8cf"

    def __init__(
        self,
        *,
        checkpoint: str,
        covers: Target | dict[str, Any] | None = None,
        batch_at_least: int | str | None = None,
        nothing_pending: bool = False,
        committed_within: timedelta | None = None,
        watermark_at_least: datetime | str | None = None,
        poke_interval: float | timedelta = 5,
        deferrable: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(poke_interval=poke_interval, **kwargs)
        self.checkpoint = checkpoint
        self.covers = covers
        self.batch_at_least = batch_at_least
        self.nothing_pending = nothing_pending
        self.committed_within = committed_within
        self.watermark_at_least = watermark_at_least
        self.deferrable = deferrable
        if not self._has_condition():
            raise ValueError(
                f"{self.task_id} waits for nothing. Give it covers, batch_at_least, "
                "nothing_pending, committed_within or watermark_at_least."
            )

    def execute(self, context: Context) -> dict[str, Any]:
        """Look once; then wait in the triggerer, or here if not deferrable."""
        if not self.deferrable:
            super().execute(context)
        return self._conclude(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Look for oneself: the trigger only says that there is something to see."""
        self.log.info("The trigger says: %s, %s", event["verdict"], event["reason"])
        return self._conclude(context)

    def poke(self, context: Context) -> bool:  # noqa: ARG002
        """Look once."""
        return self._judge().verdict is Verdict.REACHED

    def list_conditions(self) -> list[Condition]:
        """List what is waited for."""
        found: list[Condition] = []
        if self.covers is not None:
            found.append(Covers(_read_target(self.covers)))
        if self.batch_at_least is not None:
            found.append(BatchAtLeast(int(self.batch_at_least)))
        if self.nothing_pending:
            found.append(NothingPending())
        if self.committed_within is not None:
            found.append(CommittedWithin(self.committed_within.total_seconds()))
        if self.watermark_at_least is not None:
            found.append(WatermarkAtLeast(_to_milliseconds(self.watermark_at_least)))
        return found

    def describe_success(self, judgement: Judgement) -> dict[str, Any]:
        """Say what was reached, for XCom and the asset events."""
        return asdict(judgement.progress)

    def _has_condition(self) -> bool:
        values = (self.covers, self.batch_at_least, self.committed_within, self.watermark_at_least)
        return self.nothing_pending or any(value is not None for value in values)

    def _judge(self) -> Judgement:
        judgement = judge(open_path(self.checkpoint), self.list_conditions())
        if judgement.verdict is Verdict.FAILED:
            raise AirflowFailException(judgement.reason)
        self.log.info("%s: %s", judgement.verdict, judgement.reason)
        return judgement

    def _defer(self) -> None:
        self.defer(
            trigger=CheckpointTrigger(
                checkpoint=self.checkpoint,
                conditions=dump_conditions(self.list_conditions()),
                poll_seconds=float(self.poke_interval),
            ),
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout),
        )

    def _conclude(self, context: Context) -> dict[str, Any]:
        judgement = self._judge()
        if judgement.verdict is Verdict.WAITING:
            self._defer()
        reached = self.describe_success(judgement)
        for outlet in self.outlets:
            if isinstance(outlet, Asset):
                context["outlet_events"][outlet].extra.update(reached)
        return reached


class ConfirmSensor(CheckpointSensor):
    """Succeeds when a planned run reached its target, and tells downstream what was committed."""

    template_fields: Sequence[str] = (*CheckpointSensor.template_fields, "planned_run")

    def __init__(
        self,
        *,
        pipeline: Pipeline,
        settings: Settings,
        planned_run: str = "{{ run_id }}",
        **kwargs: Any,
    ) -> None:
        self.planned_run = planned_run
        super().__init__(
            checkpoint=str(settings.checkpoint_of(pipeline.name)),
            timeout=pipeline.confirm_timeout.total_seconds(),
            outlets=[pipeline_asset(pipeline.name)],
            # Submit is skipped where an idle run has only to announce what earlier ones committed.
            trigger_rule=TriggerRule.NONE_FAILED,
            **kwargs,
        )
        self.pipeline = pipeline
        self.settings = settings

    def list_conditions(self) -> list[Condition]:
        """List what is waited for: the run's own target."""
        return [RunReached(self.planned_run)]

    def describe_success(self, judgement: Judgement) -> dict[str, Any]:
        """Say what was committed since downstream was told last, be it by this run or not."""
        ledger = Ledger.beside(self.settings.state_of(self.pipeline.name))
        plan = ledger.read_plan(self.planned_run)
        progress = judgement.progress
        if not plan.has_news(progress.query_id, progress.committed_batch):
            raise AirflowSkipException("The job found nothing new, so there is nothing to tell.")
        recover_batches(self.pipeline, self.settings, plan, progress)
        committed = progress.committed_batch
        attempt = ledger.read_attempt(self.planned_run)
        news = ledger.sum_up(plan.find_first_untold(progress.query_id, committed), committed)
        told = {
            "run_id": self.planned_run,
            "query_id": progress.query_id,
            "committed_batch": progress.committed_batch,
            "batches": list(news.batches),
            "input_rows": news.input_rows,
            "rows": news.output_rows,
            "quarantined": news.quarantined,
            "expectations": news.failed,
            "offsets": {source.source: source.committed for source in progress.sources},
            "table_versions": news.versions,
            "warning": plan.warning,
            "stopped": attempt.stop.reason if attempt and attempt.stop else None,
        }
        send_commit(self.pipeline.name, told)
        return told

    def _has_condition(self) -> bool:
        return True


def _read_target(covers: Target | dict[str, Any]) -> Target:
    return parse_target(covers) if isinstance(covers, dict) else covers


def _to_milliseconds(moment: datetime | str) -> int:
    at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
