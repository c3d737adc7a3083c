"""Apprise's notifier, which says when a message was not taken."""

from __future__ import annotations

from airflow.providers.apprise.notifications.apprise import AppriseNotifier
from airflow.sdk import Context
from apprise import Apprise

from tidegate.core.errors import DeliveryError


class StrictAppriseNotifier(AppriseNotifier):
    """Tells by Apprise; Airflow's own notifier takes no notice of services that refuse."""

    def notify(self, context: Context) -> None:  # noqa: ARG002
        """Tell all services of the connection; raise where one of them refuses."""
        services = Apprise()
        connection = self.hook.get_connection(self.apprise_conn_id)
        self.hook.set_config_from_conn(conn=connection, apprise_obj=services)
        if not services.notify(body=self.body, title=self.title or "", tag=self.tag):
            raise DeliveryError(
                f"A service of the connection {self.apprise_conn_id!r} did not take the message, or "
                f"none has the tag {self.tag!r}.",
                remedy="The log has Apprise's own words on it, where it says why.",
            )
