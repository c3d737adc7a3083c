"""Telling each incident once when it begins, and once when it is over.

A channel counts as told only after its notifier has returned. Where that fails, the incident is kept
as untold and told the next time: each is told at least once, and twice only where a process dies
between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from tidegate.core.alerts.alert import Alert
from tidegate.core.alerts.incident import Book, Incidents
from tidegate.core.alerts.message import Message
from tidegate.core.errors import DeliveryError, LeaseHeldError
from tidegate.core.lease import Lease, hold_lease
from tidegate.core.spec.alerts import Channel, Rule

Deliver = Callable[[Channel, Message], None]
"""Tells a channel something; raises where that cannot be done."""


FindLink = Callable[[str, Alert], str | None]
"""Finds the page that shows more of a pipeline's alert."""


def find_no_link(pipeline: str, alert: Alert) -> None:
    """Know no page that shows more."""


@dataclass(frozen=True)
class Telling:
    """What was told, and what could not be."""

    told: tuple[Message, ...] = ()
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Teller:
    """Keeps the incidents of one pipeline, and tells them."""

    pipeline: str
    incidents: Incidents
    channels: tuple[Channel, ...]
    deliver: Deliver
    lease_seconds: float = 30
    find_link: FindLink = find_no_link

    def settle(
        self, alerts: Collection[Alert], unknown: Collection[Rule], now: datetime
    ) -> Telling:
        """Note what is new and what is over as of a time, and tell it.

        Another process that does the same at this moment tells it instead.
        """
        known = self.incidents.read()
        updated = self._update(known, alerts, unknown, now)
        if updated == known and not updated.untold:
            return Telling()
        with (
            suppress(LeaseHeldError),
            hold_lease(
                self.incidents.lease, "alerts", seconds=self.lease_seconds, waits=False
            ) as lease,
        ):
            book = self._update(self.incidents.read(), alerts, unknown, now)
            self.incidents.write(book)
            return self._tell(book, lease)
        return Telling()

    def _update(
        self, book: Book, alerts: Collection[Alert], unknown: Collection[Rule], now: datetime
    ) -> Book:
        return book.update(alerts, unknown, [channel.label for channel in self.channels], now)

    def _tell(self, book: Book, lease: Lease) -> Telling:
        told, failures = [], []
        for channel in self.channels:
            for incident in [each for each in book.untold if channel.label in each.untold]:
                link = self.find_link(self.pipeline, incident.alert)
                message = Message.of(self.pipeline, incident, link)
                lease.check()
                try:
                    self.deliver(channel, message)
                except Exception as error:
                    # Whatever a notifier stumbles over must not keep the others from being told.
                    failures.append(f"{channel.label}: {message.subject}: {error}")
                    continue
                book = book.mark_told(incident, channel.label)
                self.incidents.write(book)
                told.append(message)
        return Telling(tuple(told), tuple(failures))


def require_told(failures: Collection[str]) -> None:
    """Raise what could not be told, for somebody who tries again."""
    if failures:
        raise DeliveryError(
            f"{len(failures)} message{'s' * (len(failures) != 1)} could not be delivered: "
            f"{'; '.join(failures)}.",
            cause="They are kept, and told the next time.",
            remedy="Check the channel's connection in Airflow, and that its service is reachable.",
        )
