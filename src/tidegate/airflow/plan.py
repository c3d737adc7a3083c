"""The plan task: what is there to do, found without a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import BaseOperator, Context, SkipMixin
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tidegate.airflow.asset import pipeline_asset
from tidegate.airflow.connection import read_airflow_connection
from tidegate.airflow.metrics import send_plan
from tidegate.core.ledger import Announcement, Decision
from tidegate.core.plan import plan_run
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline

ACCEPT_DATA_LOSS = "accept_data_loss"
"""The DAG's parameter that gives up records which expired unread."""

_NEWEST_EVENTS = 10  # somebody may have made some by hand, which say nothing


class PlanOperator(BaseOperator, SkipMixin):
    """Plans a run: goes on if there is something to do, skips the rest if not."""

    ui_color = "#d7ecf5"

    def __init__(self, *, pipeline: Pipeline, settings: Settings, **kwargs: Any) -> None:
        super().__init__(inlets=[pipeline_asset(pipeline.name)], **kwargs)
        self.pipeline = pipeline
        self.settings = settings

    def execute(self, context: Context) -> None:
        """Plan the run and open it in the ledger."""
        plan = plan_run(
            self.pipeline,
            self.settings,
            context["run_id"],
            announced=self._find_announced(context),
            accepts_loss=bool(context["params"].get(ACCEPT_DATA_LOSS)),
            connect=read_airflow_connection,
        )
        send_plan(self.pipeline.name, plan)
        self.log.info("%s: %s", plan.decision, plan.reason)
        if plan.warning:
            self.log.warning("%s", plan.warning)
        target = plan.target.describe() if plan.target else None
        context["ti"].xcom_push(
            key="plan",
            value={"decision": plan.decision.value, "reason": plan.reason, "target": target},
        )
        if plan.decision is Decision.BLOCKED:
            # What may pass is tried again, like any failed task.
            kind = AirflowException if plan.is_passing else AirflowFailException
            raise kind(f"{self.pipeline.name} is blocked: {plan.reason}")
        if plan.decision is Decision.IDLE:
            self.skip(context["ti"], self._list_needless(has_target=plan.target is not None))

    def _find_announced(self, context: Context) -> Announcement:
        # Airflow's own record, so that an event which it did not take is told again.
        events = context["inlet_events"][self.inlets[0]].ascending(False).limit(_NEWEST_EVENTS)
        for event in events:
            extra: dict[str, Any] = event.extra or {}
            if "committed_batch" in extra:
                return Announcement(extra.get("query_id"), extra["committed_batch"])
        return Announcement()

    def _list_needless(self, *, has_target: bool) -> Sequence[Any]:
        # With a target, confirm has something to announce; only the work itself is needless.
        return list(self.downstream_list if has_target else self.get_flat_relatives(upstream=False))
