"""The rules that a pipeline is held against, said or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Self

from croniter import croniter

from tidegate.core.spec.alerts import Alerts, Rule
from tidegate.core.spec.pipeline import Pipeline

_ALWAYS = "@continuous"
_NEVER = "@once"
_TIMES = 20
"""So many times of a schedule are looked at for the longest wait between two."""
_SHORTEST_LAG = timedelta(minutes=15)
_SHORTEST_SILENCE = timedelta(days=1)


@dataclass(frozen=True)
class Rules:
    """What is yet well; a rule without a number is not held."""

    state_growth: float = Alerts().state_growth
    late_rows: int = Alerts().late_rows
    quarantine_share: float = Alerts().quarantine_share
    lag_records: int | None = None
    lag_time: timedelta | None = None
    retention_headroom: timedelta | None = None
    """None where it goes by what the source keeps."""
    no_commit_for: timedelta | None = None
    no_data_for: timedelta | None = None
    off: frozenset[Rule] = frozenset()

    @classmethod
    def of(cls, alerts: Alerts, interval: timedelta | None) -> Self:
        """Take the rules of a spec, those that it does not name by its schedule's interval."""

        def take_longer(shortest: timedelta) -> timedelta | None:
            return None if interval is None else max(2 * interval, shortest)

        return cls(
            state_growth=alerts.state_growth,
            late_rows=alerts.late_rows,
            quarantine_share=alerts.quarantine_share,
            lag_records=alerts.lag_records,
            lag_time=alerts.lag_time or take_longer(_SHORTEST_LAG),
            retention_headroom=alerts.retention_headroom,
            no_commit_for=alerts.no_commit_for or take_longer(_SHORTEST_SILENCE),
            no_data_for=alerts.no_data_for,
            off=frozenset(alerts.off),
        )


def find_interval(pipeline: Pipeline, pipelines: Mapping[str, Pipeline]) -> timedelta | None:
    """Find the longest wait between two runs; that of the layers before, where they start it."""
    if pipeline.after:
        # Specs that lead back to themselves are refused, so this ends.
        before = (pipelines[name] for name in pipeline.after if name in pipelines)
        found = (find_interval(upstream, pipelines) for upstream in before)
        return min((each for each in found if each is not None), default=None)
    if pipeline.schedule in (None, _NEVER):
        return None
    if pipeline.schedule == _ALWAYS:
        return timedelta()
    times = croniter(pipeline.schedule, datetime.now(UTC), ret_type=datetime)
    return max(later - sooner for sooner, later in pairwise(next(times) for _ in range(_TIMES)))
