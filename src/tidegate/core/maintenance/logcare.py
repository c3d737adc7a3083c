"""The log of a table: how long its versions are kept, and what is left over.

Delta cleans it up itself, with every tenth commit or so. A table that nobody writes any more keeps
what it has.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime, timedelta
from math import ceil

from tidegate.core.maintenance.book import StepKind
from tidegate.core.maintenance.guard import tell_span
from tidegate.core.maintenance.history import TableHistory
from tidegate.core.maintenance.needs import Need
from tidegate.core.maintenance.step import TablePlan

LOG_RETENTION = "delta.logRetentionDuration"
_HEADROOM = timedelta(days=2)
"""Delta counts in whole days, and a reader should not be late by an hour."""
_WORTHWHILE = 20


def plan_log(
    plan: TablePlan, history: TableHistory, needs: Sequence[Need], now: datetime
) -> TablePlan:
    """Decide for how long the log is kept, and whether what is older must be cleaned up by hand."""
    kept = history.log.read_retention(history.newest)
    wanted, reason = _find_wanted(plan.table.policy.log_retention, kept, history, needs, now)
    if wanted != kept:
        return plan.do(StepKind.LOG_RETENTION, reason, wanted)
    slowest = _find_slowest(history, needs)
    if slowest and _measure(history, slowest, now) + _HEADROOM > kept:
        plan = plan.warn(
            f"{slowest.who} {slowest.why}, and the log keeps {tell_span(kept)}: it must read on soon, "
            "or log_retention must be longer"
        )
    expired = _count_expired(history, kept, now)
    if expired < _WORTHWHILE:
        return plan
    if slowest and slowest.first_logged < history.earliest + expired:
        return plan.warn(f"its log is not cleaned up: {slowest.who} {slowest.why}")
    told = f"{expired:,} versions are older than {tell_span(kept)}"
    return plan.do(StepKind.CLEAN_LOG, told)


def _find_wanted(
    policy: timedelta | None,
    kept: timedelta,
    history: TableHistory,
    needs: Sequence[Need],
    now: datetime,
) -> tuple[timedelta, str]:
    """Find how long the log should be kept: as the policy says, or as often that as readers need."""
    if policy is None:
        return kept, ""
    slowest = _find_slowest(history, needs)
    age = _measure(history, slowest, now) + _HEADROOM if slowest else policy
    # A whole multiple, so that it is not changed each day that the reader is late.
    wanted = policy * max(1, ceil(age / policy))
    told = f"the log keeps {tell_span(kept)}, and is to keep {tell_span(wanted)}"
    if slowest and wanted > policy:
        told += f" instead of {tell_span(policy)}: {slowest.who} {slowest.why}"
    return wanted, told


def _find_slowest(history: TableHistory, needs: Sequence[Need]) -> Need | None:
    """Find who needs the oldest version of the log; what is gone already nobody can wait for."""
    present = [need for need in needs if history.earliest <= need.first_logged <= history.newest]
    return min(present, key=lambda need: need.first_logged, default=None)


def _measure(history: TableHistory, need: Need, now: datetime) -> timedelta:
    """Measure the age of the first version that somebody needs."""
    logged_ms = history.read(need.first_logged).timestamp_ms
    return timedelta(milliseconds=now.timestamp() * 1000 - logged_ms)


def _count_expired(history: TableHistory, kept: timedelta, now: datetime) -> int:
    """Count the versions that a clean-up would delete."""
    before_ms = (now - kept - timedelta(days=1)).timestamp() * 1000
    versions = range(history.earliest, history.newest)
    return bisect_left(versions, before_ms, key=history.log.find_logged_ms)
