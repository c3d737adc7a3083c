"""Holding what was measured against the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from tidegate.core.alerts.measures import Measures
from tidegate.core.alerts.rules import Rules
from tidegate.core.doctor.fault import Severity
from tidegate.core.duration import spell_seconds
from tidegate.core.spec.alerts import Rule
from tidegate.core.spec.base import format_duration

_LEAST_STATE_ROWS = 1000
"""A state that is smaller grows by any share without a harm."""
_HEADROOM = timedelta(days=1)
_PART_OF_RETENTION = 4


@dataclass(frozen=True)
class Alert:
    """A rule that a pipeline is beyond, in words."""

    rule: Rule
    severity: Severity
    fact: str
    remedy: str
    value: float | None = None
    threshold: float | None = None
    run_id: str | None = None
    link: str | None = None
    """Where more is to be seen."""


def find_alerts(measures: Measures, rules: Rules) -> tuple[Alert, ...]:
    """Find the rules that are broken for sure; what is not known breaks none."""
    held = (rule for rule in Rule if rule not in rules.off and rule not in measures.unknown)
    found = (_JUDGES[rule](measures, rules) for rule in held)
    return tuple(alert for alert in found if alert)


def _judge_run(measures: Measures, rules: Rules) -> Alert | None:  # noqa: ARG001
    failure = measures.failure
    if failure is None:
        return None
    task = f" in {failure.task}" if failure.task else ""
    return Alert(
        Rule.FAILED_RUN,
        Severity.ERROR,
        f"The newest run failed{task}: {failure.reason}",
        "Do as it says; `tidegate checkpoint doctor` looks at checkpoint, source and sinks. The next "
        "run goes on from what is committed.",
        run_id=failure.run_id,
        link=failure.link,
    )


def _judge_lag_records(measures: Measures, rules: Rules) -> Alert | None:
    waiting, most = measures.waiting.records, rules.lag_records
    if waiting is None or most is None or waiting <= most:
        return None
    return Alert(
        Rule.LAG_RECORDS,
        Severity.WARNING,
        f"{waiting:,} records wait, more than {most:,}.",
        "Run the pipeline more often, raise its bound per batch, or give it more cores; "
        "`tidegate lag` shows each partition.",
        waiting,
        most,
    )


def _judge_lag_time(measures: Measures, rules: Rules) -> Alert | None:
    waited, most = measures.waiting.seconds, rules.lag_time
    if waited is None or most is None or waited <= most.total_seconds():
        return None
    return Alert(
        Rule.LAG_TIME,
        Severity.WARNING,
        f"What is read next waits for {spell_seconds(waited)}, longer than {format_duration(most)}.",
        "See that the DAG is not paused and its runs succeed; run it more often where they do.",
        waited,
        most.total_seconds(),
    )


def _judge_state(measures: Measures, rules: Rules) -> Alert | None:
    run = measures.newest
    if run is None or not run.state_rows or not run.state_rows_before:
        return None
    growth = (run.state_rows - run.state_rows_before) / run.state_rows_before
    if growth <= rules.state_growth or run.state_rows < _LEAST_STATE_ROWS:
        return None
    return Alert(
        Rule.STATE_GROWTH,
        Severity.WARNING,
        f"The query remembers {run.state_rows:,} rows, {growth:.0%} more than before the run "
        f"({run.state_rows_before:,}); more than {rules.state_growth:.0%} are told.",
        "See that the watermark moves on, and that its delay is no longer than `tidegate explain` "
        "suggests; a state that never stops growing fills the disk.",
        growth,
        rules.state_growth,
        run.run_id,
    )


def _judge_late_rows(measures: Measures, rules: Rules) -> Alert | None:
    run = measures.newest
    if run is None or run.late_rows is None or run.late_rows <= rules.late_rows:
        return None
    return Alert(
        Rule.LATE_ROWS,
        Severity.WARNING,
        f"At least {run.late_rows:,} rows came after the watermark and were left out; more than "
        f"{rules.late_rows:,} are told.",
        "`tidegate explain` shows how late rows come, and suggests a watermark.",
        run.late_rows,
        rules.late_rows,
        run.run_id,
    )


def _judge_quarantine(measures: Measures, rules: Rules) -> Alert | None:
    run = measures.newest
    if run is None or not run.quarantined or not run.input_rows:
        return None
    share = run.quarantined / run.input_rows
    if share <= rules.quarantine_share:
        return None
    return Alert(
        Rule.QUARANTINE_SHARE,
        Severity.WARNING,
        f"{run.quarantined:,} of {run.input_rows:,} rows were put aside, {share:.1%}; more than "
        f"{rules.quarantine_share:.1%} are told.",
        "`tidegate quarantine show` tells why; put source or spec right, then take them up again by "
        "`tidegate quarantine replay`.",
        share,
        rules.quarantine_share,
        run.run_id,
    )


def _judge_headroom(measures: Measures, rules: Rules) -> Alert | None:
    kept, retention = measures.waiting.kept_seconds, measures.waiting.retention_seconds
    if kept is None or not measures.waiting.is_any:
        return None
    part = retention / _PART_OF_RETENTION if retention else _HEADROOM.total_seconds()
    by_default = min(_HEADROOM.total_seconds(), part)
    least = rules.retention_headroom.total_seconds() if rules.retention_headroom else by_default
    if kept >= least:
        return None
    return Alert(
        Rule.RETENTION_HEADROOM,
        Severity.ERROR,
        f"What is read next is kept for {spell_seconds(max(0.0, kept))} more, less than "
        f"{spell_seconds(least)}; then it is lost.",
        "Run the pipeline now, or lengthen the source's retention: retention.ms of a topic, "
        "delta.logRetentionDuration of a table.",
        kept,
        least,
    )


def _judge_commits(measures: Measures, rules: Rules) -> Alert | None:
    is_idle = measures.waiting.is_any is False
    return None if is_idle else _judge_silence(Rule.NO_COMMIT_FOR, measures, rules.no_commit_for)


def _judge_data(measures: Measures, rules: Rules) -> Alert | None:
    return _judge_silence(Rule.NO_DATA_FOR, measures, rules.no_data_for)


def _judge_silence(rule: Rule, measures: Measures, most: timedelta | None) -> Alert | None:
    silent = measures.silent_seconds
    if silent is None or most is None or silent <= most.total_seconds():
        return None
    is_stuck = rule is Rule.NO_COMMIT_FOR
    return Alert(
        rule,
        Severity.WARNING,
        f"Nothing was committed for {spell_seconds(silent)}, longer than {format_duration(most)}"
        f"{', while something waits' if is_stuck and measures.waiting.is_any else ''}.",
        "See that the DAG is not paused, that the scheduler runs, and that runs succeed."
        if is_stuck
        else "See that the source is still written to.",
        silent,
        most.total_seconds(),
    )


_Judge = Callable[[Measures, Rules], Alert | None]
_JUDGES: Mapping[Rule, _Judge] = {
    Rule.FAILED_RUN: _judge_run,
    Rule.LAG_RECORDS: _judge_lag_records,
    Rule.LAG_TIME: _judge_lag_time,
    Rule.STATE_GROWTH: _judge_state,
    Rule.LATE_ROWS: _judge_late_rows,
    Rule.QUARANTINE_SHARE: _judge_quarantine,
    Rule.RETENTION_HEADROOM: _judge_headroom,
    Rule.NO_COMMIT_FOR: _judge_commits,
    Rule.NO_DATA_FOR: _judge_data,
}
