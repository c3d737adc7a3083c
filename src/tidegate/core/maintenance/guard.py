"""How long the files of a table must be kept, so that nobody loses what is yet to be read.

VACUUM deletes a file that the table is not made of any more once it was written before a moment,
unless its removal is remembered and happened after that moment. Delta remembers a removal for
`delta.deletedFileRetentionDuration`, a week by default; of an older one, only the age of the file
itself is left to go by.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil

from tidegate.core.errors import SourceError
from tidegate.core.maintenance.history import FileLog, TableHistory
from tidegate.core.maintenance.needs import Need

TOMBSTONE_RETENTION = "delta.deletedFileRetentionDuration"
_WEEK = timedelta(days=7)
_TWO_DAYS = 48  # hours
_MARGIN = timedelta(hours=1)
"""Between the decision and VACUUM some time passes, and clocks differ."""


@dataclass(frozen=True)
class Retention:
    """How long files are kept once the table is not made of them any more."""

    span: timedelta
    reason: str = ""
    """Why it is longer than the policy says; empty where it is not."""

    @property
    def hours(self) -> int:
        """The whole hours that VACUUM is told."""
        return ceil(self.span / timedelta(hours=1))


class Guard:
    """Works out, for one table, what must be kept for its readers."""

    def __init__(self, history: TableHistory, now: datetime) -> None:
        self._history = history
        self._now_ms = int(now.timestamp() * 1000)
        said = history.log.find_interval(history.newest, TOMBSTONE_RETENTION)
        self._said = said
        self._remembered = (said or _WEEK) - _MARGIN

    def find_retention(self, policy: timedelta, needs: Iterable[Need]) -> Retention:
        """Find how long files must be kept, at the least as long as the policy says."""
        kept = Retention(policy)
        if self._said and self._said > policy:
            told = f"the table says {TOMBSTONE_RETENTION}"
            kept = Retention(self._said, _tell(self._said, policy, told))
        for need in needs:
            age = self._find_age(need)
            if age is not None and age + _MARGIN > kept.span:
                span = timedelta(hours=ceil((age + _MARGIN) / timedelta(hours=1)))
                kept = Retention(span, _tell(span, policy, self._tell_need(need)))
        return kept

    def _find_age(self, need: Need) -> timedelta | None:
        """Find for how long files must be kept for one reader; None where none is in danger."""
        start = need.first if need.snapshot is None else min(need.first, need.snapshot + 1)
        commits = list(self._history.read_from(start))
        removed = {path: at for commit in commits for path, at in commit.removed.items()}
        needed = self._list_needed(need, commits)
        ages = [
            self._find_file_age(path, written_ms, removed.get(path))
            for path, written_ms in needed.items()
            if path not in self._history.active
        ]
        return max((age for age in ages if age is not None), default=None)

    def _list_needed(self, need: Need, commits: list[FileLog]) -> dict[str, int | None]:
        """List the files that a reader needs, and when each was written where the log tells."""
        needed: dict[str, int | None] = {}
        if need.snapshot is not None:
            needed |= self._list_snapshot(need.snapshot)
        last = self._history.newest if need.last is None else need.last
        for commit in commits:
            if need.first <= commit.version <= last:
                needed |= commit.added
                if need.takes_changes:
                    needed |= dict.fromkeys((*commit.deleted, *commit.recorded))
        return needed

    def _list_snapshot(self, version: int) -> dict[str, int]:
        try:
            files = self._history.list_files(version).values()
        except SourceError:
            return {}  # its log is gone, so nobody can read it any more
        return {file.path: file.written_ms for file in files}

    def _find_file_age(
        self, path: str, written_ms: int | None, removed_ms: int | None
    ) -> timedelta | None:
        if removed_ms is not None and self._measure(removed_ms) < self._remembered:
            return self._measure(removed_ms)
        if written_ms is None:
            try:
                written_ms = int(self._history.log.locate(path).stat().st_mtime * 1000)
            except FileNotFoundError:
                return None  # deleted already
        return self._measure(written_ms)

    def _measure(self, moment_ms: int) -> timedelta:
        return timedelta(milliseconds=self._now_ms - moment_ms)

    def _tell_need(self, need: Need) -> str:
        before = need.first - 1 if need.snapshot is None else need.snapshot
        if not self._history.earliest <= before <= self._history.newest:
            return f"{need.who} {need.why}"
        at = datetime.fromtimestamp(self._history.read(before).timestamp_ms / 1000, UTC)
        return f"{need.who} {need.why}, of {at:%Y-%m-%d}"


def _tell(span: timedelta, policy: timedelta, why: str) -> str:
    return f"VACUUM keeps {tell_span(span)} instead of {tell_span(policy)}: {why}"


def tell_span(span: timedelta) -> str:
    """Say a length of time in days, or in hours where it is shorter than two."""
    hours = ceil(span / timedelta(hours=1))
    number, unit = (ceil(hours / 24), "day") if hours > _TWO_DAYS else (hours, "hour")
    return f"{number} {unit}{'' if number == 1 else 's'}"
