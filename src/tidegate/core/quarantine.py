"""What pipelines put aside, read without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidegate.core.deltatable import DeltaRows, quote_text
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline

_TALLIED = """
    rule, sink, count(*) AS rows, count(DISTINCT run_id) AS runs,
    min(quarantined_at) AS first, max(quarantined_at) AS last
"""
_NEWEST_FIRST = (
    'ORDER BY quarantined_at DESC, batch_id DESC, topic, "partition", "offset", file, rule, "row"'
)
_BY_RULE = "GROUP BY rule, sink ORDER BY rows DESC, rule, sink"


@dataclass(frozen=True)
class Tally:
    """How much one rule of a pipeline put aside."""

    pipeline: str
    rule: str
    sink: str | None
    rows: int
    runs: int
    first: datetime
    last: datetime


@dataclass(frozen=True)
class Choice:
    """Which of the rows that were put aside are meant; all where nothing is said."""

    rule: str | None = None
    run_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def to_sql(self) -> str:
        """Spell it as a condition of a query without a JVM."""
        conditions = ["true"]
        if self.rule is not None:
            conditions.append(f"rule = {quote_text(self.rule)}")
        if self.run_id is not None:
            conditions.append(f"run_id = {quote_text(self.run_id)}")
        if self.since is not None:
            conditions.append(f"quarantined_at >= TIMESTAMP '{self.since.isoformat()}'")
        if self.until is not None:
            conditions.append(f"quarantined_at < TIMESTAMP '{self.until.isoformat()}'")
        return " AND ".join(conditions)

    def describe(self) -> str:
        """Say the choice in a few words."""
        said = {"rule": self.rule, "run": self.run_id, "since": self.since, "until": self.until}
        told = [f"{name} {value}" for name, value in said.items() if value is not None]
        return " and ".join(told) or "everything"


@dataclass(frozen=True)
class Chosen:
    """How much of a version of the table is meant."""

    version: int
    rows: int


def count_quarantine(pipeline: Pipeline, settings: Settings, choice: Choice) -> Chosen | None:
    """Count what is meant by a choice; None where nothing was ever put aside."""
    rows = _open(pipeline, settings)
    if rows is None:
        return None
    (counted,) = rows.select("count(*) AS rows", choice.to_sql()).to_pylist()
    return Chosen(rows.version, counted["rows"])


def tally_quarantine(pipeline: Pipeline, settings: Settings) -> list[Tally]:
    """Count what a pipeline put aside, by rule."""
    rows = _open(pipeline, settings)
    tallies = rows.select(_TALLIED, rest=_BY_RULE).to_pylist() if rows else []
    return [Tally(pipeline=pipeline.name, **tally) for tally in tallies]


def read_quarantine(
    pipeline: Pipeline, settings: Settings, choice: Choice, limit: int
) -> Iterator[dict[str, Any]]:
    """Read what a pipeline put aside, as much as is asked for, the newest first."""
    rows = _open(pipeline, settings)
    if rows:
        chosen = rows.select(where=choice.to_sql(), rest=f"{_NEWEST_FIRST} LIMIT {limit}")
        yield from chosen.to_pylist()


def tell_place(row: Mapping[str, Any]) -> str:
    """Say where a row came from."""
    if row["topic"] is not None:
        return f"{row['topic']}-{row['partition']} at {row['offset']:,}"
    return row["file"] or f"batch {row['batch_id']}"


def tell_content(row: Mapping[str, Any]) -> str:
    """Say what was put aside: the row, or the value that did not parse."""
    return row["row"] or (row["value"] or b"").decode(errors="backslashreplace")


def _open(pipeline: Pipeline, settings: Settings) -> DeltaRows | None:
    return DeltaRows.open(settings.locate(pipeline.quarantine_sink.table))
