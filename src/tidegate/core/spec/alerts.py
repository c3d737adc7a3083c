"""What somebody is to be told of, and how."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, NonNegativeInt, StringConstraints

from tidegate.core.spec.base import (
    Count,
    Duration,
    FunctionReference,
    SpecModel,
    check_pattern,
    refuse_truth,
)
from tidegate.core.spec.expectation import Share


class Rule(StrEnum):
    """What may be beyond what is well."""

    FAILED_RUN = "failed_run"
    LAG_RECORDS = "lag_records"
    LAG_TIME = "lag_time"
    STATE_GROWTH = "state_growth"
    LATE_ROWS = "late_rows"
    QUARANTINE_SHARE = "quarantine_share"
    RETENTION_HEADROOM = "retention_headroom"
    NO_COMMIT_FOR = "no_commit_for"
    NO_DATA_FOR = "no_data_for"


Text = Annotated[str, StringConstraints(min_length=1)]
Address = Annotated[str, check_pattern(r"[^@\s,;<>]+@[^@\s,;<>]+", "a mail address")]


_SMTP = "smtp_default"


class SmtpChannel(SpecModel):
    """Mails, by Airflow's SmtpNotifier."""

    type: Literal["smtp"]
    to: Annotated[tuple[Address, ...], Field(min_length=1)]
    connection: Text = Field(
        default=_SMTP, description="Airflow's connection; its from_email is the sender."
    )

    @property
    def label(self) -> str:
        """What it is called, and known again by."""
        by = "" if self.connection == _SMTP else f" by {self.connection}"
        return f"smtp {', '.join(self.to)}{by}"


class SlackChannel(SpecModel):
    """Messages to a channel of Slack, by Airflow's SlackNotifier."""

    type: Literal["slack"]
    channel: Text = Field(description="Such as #ops.")
    connection: Text = "slack_api_default"

    @property
    def label(self) -> str:
        """What it is called, and known again by."""
        return f"slack {self.connection} {self.channel}"


class SlackWebhookChannel(SpecModel):
    """Messages to an incoming webhook of Slack, by Airflow's SlackWebhookNotifier."""

    type: Literal["slack_webhook"]
    connection: Text = "slack_default"

    @property
    def label(self) -> str:
        """What it is called, and known again by."""
        return f"slack_webhook {self.connection}"


class AppriseChannel(SpecModel):
    """Messages by Apprise, which knows some hundred services, by Airflow's AppriseNotifier."""

    type: Literal["apprise"]
    connection: Text = "apprise_default"
    tag: Text = Field(default="all", description="Which services of the connection.")

    @property
    def label(self) -> str:
        """What it is called, and known again by."""
        return f"apprise {self.connection} {self.tag}"


class PythonChannel(SpecModel):
    """A notifier of one's own."""

    type: Literal["python"]
    notifier: FunctionReference = Field(
        description="module:name of an Airflow notifier, or of a function that is given a context."
    )

    @property
    def label(self) -> str:
        """What it is called, and known again by."""
        return f"python {self.notifier}"


Channel = Annotated[
    SmtpChannel | SlackChannel | SlackWebhookChannel | AppriseChannel | PythonChannel,
    Field(discriminator="type"),
]
"""A way by which somebody is told."""


class Alerts(SpecModel):
    """The rules of a pipeline: what is beyond them is told once, and once more when it is over."""

    lag_records: Count | None = Field(
        default=None, description="More records than this wait in Kafka; not held by default."
    )
    lag_time: Duration | None = Field(
        default=None,
        description="Something waits for longer; twice the schedule's interval by default, and "
        "15 minutes at the least.",
    )
    state_growth: Share = Field(
        default=0.1,
        json_schema_extra={"default": "10%"},
        description="What the query remembers grew by more than this share within a run.",
    )
    late_rows: Annotated[NonNegativeInt, BeforeValidator(refuse_truth)] = Field(
        default=0, description="More rows than this came after the watermark, and were left out."
    )
    quarantine_share: Share = Field(
        default=0.05,
        json_schema_extra={"default": "5%"},
        description="More than this share of a run's rows was put aside.",
    )
    retention_headroom: Duration | None = Field(
        default=None,
        description="What waits is kept for less than this; a day by default, or a quarter of what "
        "the source keeps where that is less.",
    )
    no_commit_for: Duration | None = Field(
        default=None,
        description="Something waits, and nothing was committed for longer; a day by default, or "
        "twice the schedule's interval where that is more.",
    )
    no_data_for: Duration | None = Field(
        default=None,
        description="Nothing was committed for longer, whether or not anything waits; not held by "
        "default.",
    )
    off: tuple[Rule, ...] = Field(
        default=(), description="Rules that are not held; failed_run is one, too."
    )
    notify: tuple[Channel, ...] | None = Field(
        default=None, description="Who is told; those of TIDEGATE_NOTIFY where this is left out."
    )

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        off = given.get("off")
        both = sorted({str(rule) for rule in off} & set(given)) if isinstance(off, list) else []
        if both:
            yield f"{', '.join(both)} is off and has a value; leave one of them out"
