"""Files that a table is not made of any more, which VACUUM would delete."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tidegate.core.maintenance.book import Done, StepKind
from tidegate.core.maintenance.guard import Retention, tell_span
from tidegate.core.maintenance.history import TableHistory
from tidegate.core.maintenance.step import TablePlan

_ORPHANS = timedelta(days=30)
"""Files of writers that were killed are in no log; they are looked for this often."""


def plan_vacuum(
    plan: TablePlan,
    history: TableHistory,
    retention: Retention,
    last: Done | None,
    now: datetime,
) -> TablePlan:
    """Decide whether there are files to delete, as far as the log and the last time tell."""
    if not plan.table.policy.vacuum:
        return plan
    before_ms = int((now - retention.span).timestamp() * 1000)
    since_ms = last.before_ms if last and last.before_ms is not None else 0
    if _has_removed(history, since_ms, before_ms):
        told = f"files were taken away more than {tell_span(retention.span)} ago"
        return plan.do(StepKind.VACUUM, _join(told, retention), retention.span)
    looked = _find_looked(history, last)
    if now - looked >= max(_ORPHANS, retention.span):
        told = f"files of writers that were killed were last looked for on {looked:%Y-%m-%d}"
        return plan.do(StepKind.VACUUM, _join(told, retention), retention.span)
    told = f"no files were taken away more than {tell_span(retention.span)} ago"
    plan = plan.pass_over(f"{told} since the last VACUUM" if last else told)
    return plan.warn(retention.reason) if retention.reason else plan


def _has_removed(history: TableHistory, since_ms: int, before_ms: int) -> bool:
    """Whether a commit between two moments took files away, or recorded changes in some."""
    for version in range(history.find_first_since(since_ms), history.newest + 1):
        commit = history.read(version)
        if commit.timestamp_ms >= before_ms:
            break
        if commit.removed or commit.recorded:
            return True
    return False


def _find_looked(history: TableHistory, last: Done | None) -> datetime:
    """Find when the folder was last looked through, or else when the table began."""
    if last:
        return datetime.fromisoformat(last.at)
    return datetime.fromtimestamp(history.read(history.earliest).timestamp_ms / 1000, UTC)


def _join(told: str, retention: Retention) -> str:
    return f"{told}; {retention.reason}" if retention.reason else told
