"""Incidents: what is beyond a rule, from when it was first seen until it is over.

    alerts/incidents.json    those that are open, and the newest that are over

One file, written whole, so that a page reads it without a lock. Whoever changes it holds the lease
beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Self

from pydantic import TypeAdapter, ValidationError
from upath import UPath

from tidegate.core.alerts.alert import Alert
from tidegate.core.errors import LedgerError
from tidegate.core.lease import LeaseFolder
from tidegate.core.spec.alerts import Rule
from tidegate.core.storage import read_json, write_json

_MOST_CLOSED = 50


@dataclass(frozen=True)
class Incident:
    """A rule that was broken at one time; told when it begins, and when it is over."""

    alert: Alert
    """As it was seen last."""
    opened_at: str
    over_at: str | None = None
    untold: tuple[str, ...] = ()
    """The channels that are yet to be told how it stands."""

    def is_newer_than(self, at: datetime) -> bool:
        """Whether it was opened later."""
        return datetime.fromisoformat(self.opened_at) > at

    def keep(self, channels: Collection[str], alert: Alert | None = None) -> Incident:
        """Go on with it as it is seen now, without the channels that there are no more."""
        untold = tuple(channel for channel in self.untold if channel in channels)
        return replace(self, alert=alert or self.alert, untold=untold)

    def mark_told(self, channel: str) -> Incident:
        """Note that a channel was told."""
        return replace(self, untold=tuple(each for each in self.untold if each != channel))


@dataclass(frozen=True)
class Book:
    """The incidents of one pipeline: of each rule at most one is open."""

    open: tuple[Incident, ...] = ()
    closed: tuple[Incident, ...] = ()
    """The newest first."""

    @property
    def untold(self) -> tuple[Incident, ...]:
        """Those that somebody is yet to be told of, in the order in which they came about."""
        return tuple(each for each in (*reversed(self.closed), *self.open) if each.untold)

    def update(
        self,
        alerts: Iterable[Alert],
        unknown: Collection[Rule],
        channels: Iterable[str],
        now: datetime,
    ) -> Book:
        """Open what is new and close what is over; what nobody can judge stays as it is.

        What was opened after the time of the measurement is not known to it, and stays too.
        """
        broken = {alert.rule: alert for alert in alerts}
        everybody = tuple(channels)
        open_now, over = [], []
        for each in self.open:
            rule = each.alert.rule
            if rule in broken:
                open_now.append(each.keep(everybody, broken.pop(rule)))
            elif rule in unknown or each.is_newer_than(now):
                open_now.append(each.keep(everybody))
            else:
                over.append(replace(each, over_at=_spell(now), untold=everybody))
        new = [Incident(alert, _spell(now), untold=everybody) for alert in broken.values()]
        closed = (*over, *(each.keep(everybody) for each in self.closed))
        return Book((*open_now, *new), closed[:_MOST_CLOSED])

    def mark_told(self, told: Incident, channel: str) -> Book:
        """Note that a channel was told of an incident."""
        return Book(
            *(
                tuple(each.mark_told(channel) if each == told else each for each in part)
                for part in (self.open, self.closed)
            )
        )


def _spell(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")


_BOOK: TypeAdapter[Book] = TypeAdapter(Book)


@dataclass(frozen=True)
class Incidents:
    """Where the incidents of one pipeline are kept."""

    folder: UPath

    @classmethod
    def beside(cls, state: UPath) -> Self:
        """Open the incidents in a pipeline's state folder."""
        return cls(state / "alerts")

    @property
    def lease(self) -> LeaseFolder:
        """The lease of whoever changes them."""
        return LeaseFolder(self.folder / "lease")

    def read(self) -> Book:
        """Read all that is known."""
        try:
            value = read_json(self._file)
            return Book() if value is None else _BOOK.validate_python(value)
        except (ValidationError, ValueError) as error:
            raise LedgerError(
                f"The incidents in {self._file} cannot be read: {error}.",
                remedy="Delete the file: what is still so is told once more.",
            ) from error

    def write(self, book: Book) -> None:
        """Write all that is known."""
        write_json(self._file, asdict(book))

    def list_open(self) -> tuple[Incident, ...]:
        """List what is not over, for a page."""
        return self.read().open

    def list_closed(self) -> tuple[Incident, ...]:
        """List what is over, the newest first, for a page."""
        return self.read().closed

    @property
    def _file(self) -> UPath:
        return self.folder / "incidents.json"
