"""Messages by Airflow's notifiers."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from airflow.sdk import BaseNotifier
from airflow.sdk.configuration import conf

from tidegate.core.alerts.alert import Alert
from tidegate.core.alerts.message import Message
from tidegate.core.errors import DeliveryError, TransformError
from tidegate.core.function import load_function
from tidegate.core.settings import Settings
from tidegate.core.spec.alerts import (
    AppriseChannel,
    Channel,
    PythonChannel,
    SlackChannel,
    SlackWebhookChannel,
    SmtpChannel,
)

# Templates of the notifiers: what a message says is their value, and is never taken for a template.
_SUBJECT, _TEXT, _HTML = ("{{ message.subject }}", "{{ message.text }}", "{{ message.html }}")
_BY_HAND = "cli__"


@dataclass(frozen=True)
class Notifiers:
    """Tells channels something by the notifiers that they name."""

    settings: Settings

    def deliver(self, channel: Channel, message: Message) -> None:
        """Tell a channel something; raise where that cannot be done."""
        self._open(channel)({"message": message})

    def _open(self, channel: Channel) -> Callable[[Any], None]:
        try:
            match channel:
                case SmtpChannel():
                    return _open_smtp(channel)
                case SlackChannel():
                    return _open_slack(channel)
                case SlackWebhookChannel():
                    return _open_slack_webhook(channel)
                case AppriseChannel():
                    return _open_apprise(channel)
                case PythonChannel():
                    return self._open_own(channel)
        except ImportError as error:
            kind = channel.type.partition("_")[0]
            raise DeliveryError(
                f"Nobody can be told by {channel.type}: {error}.",
                cause=f"Airflow's provider for {kind} is not installed.",
                remedy=f"Install it where Airflow runs: pip install 'tidegate[{kind}]'.",
            ) from error

    def _open_own(self, channel: PythonChannel) -> Callable[[Any], None]:
        try:
            found = load_function(channel.notifier, self.settings.pipelines, "notifier")
        except TransformError as error:
            raise DeliveryError(error.fact, cause=error.cause, remedy=error.remedy) from error
        if isinstance(found, type):
            return found()  # type: ignore[no-any-return]
        # A notifier renders its templates in place, so that it can be used only once.
        return copy(found) if isinstance(found, BaseNotifier) else found


def find_link(pipeline: str, alert: Alert) -> str | None:
    """Find the page in Airflow that shows a run, or else the pipeline's."""
    base = conf.get("api", "base_url", fallback=None)
    if not base:
        return None
    is_ours = alert.run_id and not alert.run_id.startswith(_BY_HAND)
    run = f"/runs/{quote(alert.run_id or '')}" if is_ours else ""
    return f"{base.rstrip('/')}/dags/{pipeline}{run}"


def _open_smtp(channel: SmtpChannel) -> BaseNotifier:
    from airflow.providers.smtp.notifications.smtp import SmtpNotifier

    return SmtpNotifier(
        to=list(channel.to),
        subject=_SUBJECT,
        html_content=_HTML,
        smtp_conn_id=channel.connection,
    )


def _open_slack(channel: SlackChannel) -> BaseNotifier:
    from airflow.providers.slack.notifications.slack import SlackNotifier

    text = f"*{_SUBJECT}*\n{_TEXT}"
    return SlackNotifier(slack_conn_id=channel.connection, channel=channel.channel, text=text)


def _open_slack_webhook(channel: SlackWebhookChannel) -> BaseNotifier:
    from airflow.providers.slack.notifications.slack_webhook import SlackWebhookNotifier

    text = f"*{_SUBJECT}*\n{_TEXT}"
    return SlackWebhookNotifier(slack_webhook_conn_id=channel.connection, text=text)


def _open_apprise(channel: AppriseChannel) -> BaseNotifier:
    from tidegate.airflow.apprise import StrictAppriseNotifier

    return StrictAppriseNotifier(
        apprise_conn_id=channel.connection, tag=channel.tag, title=_SUBJECT, body=_TEXT
    )
