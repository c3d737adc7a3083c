"""What somebody is told of an incident, in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Self

from tidegate.core.alerts.incident import Incident
from tidegate.core.duration import spell_seconds
from tidegate.core.spec.alerts import Rule

_LONGEST_SUBJECT = 120

_NAMES = {
    Rule.FAILED_RUN: "run failed",
    Rule.LAG_RECORDS: "too many records wait",
    Rule.LAG_TIME: "behind its schedule",
    Rule.STATE_GROWTH: "its state grows",
    Rule.LATE_ROWS: "rows came too late",
    Rule.QUARANTINE_SHARE: "many rows put aside",
    Rule.RETENTION_HEADROOM: "about to lose data",
    Rule.NO_COMMIT_FOR: "nothing is committed",
    Rule.NO_DATA_FOR: "no new data",
}


def name_rule(rule: Rule) -> str:
    """Name what is wrong where a rule is broken, in a few words."""
    return _NAMES[rule]


@dataclass(frozen=True)
class Message:
    """A message, as notifiers need it."""

    pipeline: str
    incident: Incident
    subject: str
    text: str
    html: str

    @classmethod
    def of(cls, pipeline: str, incident: Incident, link: str | None = None) -> Self:
        """Put an incident into words."""
        alert = incident.alert
        over = "over: " if incident.over_at else ""
        subject = f"[tidegate] {pipeline}: {over}{name_rule(alert.rule)}"[:_LONGEST_SUBJECT]
        facts = _list_facts(pipeline, incident, alert.link or link)
        text = "\n".join([*_tell(incident), "", *(f"{key}: {value}" for key, value in facts)])
        return cls(pipeline, incident, subject, text, _render(incident, facts))


def _tell(incident: Incident) -> list[str]:
    alert = incident.alert
    if incident.over_at:
        return [f"This is over. It was: {alert.fact}"]
    return [alert.fact, *([alert.remedy] if alert.remedy else [])]


def _list_facts(pipeline: str, incident: Incident, link: str | None) -> list[tuple[str, str]]:
    alert = incident.alert
    opened = datetime.fromisoformat(incident.opened_at)
    facts = [("pipeline", pipeline), ("rule", str(alert.rule)), ("since", _spell_time(opened))]
    if incident.over_at:
        over = datetime.fromisoformat(incident.over_at)
        lasted = spell_seconds((over - opened).total_seconds())
        facts.append(("over", f"{_spell_time(over)}, after {lasted}"))
    facts += [("run", alert.run_id)] if alert.run_id else []
    return [*facts, *([("see", link)] if link else [])]


def _spell_time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _render(incident: Incident, facts: list[tuple[str, str]]) -> str:
    told = "".join(f"<p>{escape(line)}</p>" for line in _tell(incident))
    rows = "".join(f"<tr><td>{key}</td><td>{_link(value)}</td></tr>" for key, value in facts)
    return f"{told}<table>{rows}</table>"


def _link(value: str) -> str:
    spelled = escape(value)
    return (
        f'<a href="{spelled}">{spelled}</a>'
        if value.startswith(("http://", "https://"))
        else spelled
    )
