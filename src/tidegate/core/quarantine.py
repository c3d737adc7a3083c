"""What pipelines put aside, read without a JVM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow.compute as pc
from deltalake import DeltaTable

from tidegate.core.deltalog import DeltaLog
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline

_GROUP = ("rule", "sink")
_AT = "quarantined_at"


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

    def to_filter(self) -> pc.Expression | None:
        """Spell it for pyarrow."""
        conditions = []
        if self.rule is not None:
            conditions.append(pc.field("rule") == self.rule)
        if self.run_id is not None:
            conditions.append(pc.field("run_id") == self.run_id)
        if self.since is not None:
            conditions.append(pc.field(_AT) >= self.since)
        whole = None
        for condition in conditions:
            whole = condition if whole is None else whole & condition
        return whole

    def describe(self) -> str:
        """Say the choice in a few words."""
        said = {"rule": self.rule, "run": self.run_id, "since": self.since}
        told = [f"{name} {value}" for name, value in said.items() if value is not None]
        return " and ".join(told) or "everything"


@dataclass(frozen=True)
class Chosen:
    """How much of a version of the table is meant."""

    version: int
    rows: int


def count_quarantine(pipeline: Pipeline, settings: Settings, choice: Choice) -> Chosen | None:
    """Count what is meant by a choice; None where nothing was ever put aside."""
    table = _open_table(pipeline, settings)
    if table is None:
        return None
    dataset = table.to_pyarrow_dataset()
    return Chosen(table.version(), dataset.scanner(filter=choice.to_filter()).count_rows())


def tally_quarantine(pipeline: Pipeline, settings: Settings) -> list[Tally]:
    """Count what a pipeline put aside, by rule."""
    dataset = _open(pipeline, settings)
    if dataset is None:
        return []
    rows = dataset.to_table(columns=[*_GROUP, "run_id", _AT])
    counted = rows.group_by(list(_GROUP)).aggregate(
        [([], "count_all"), ("run_id", "count_distinct"), (_AT, "min"), (_AT, "max")]
    )
    found = (
        Tally(
            pipeline=pipeline.name,
            rule=group["rule"],
            sink=group["sink"],
            rows=group["count_all"],
            runs=group["run_id_count_distinct"],
            first=group[f"{_AT}_min"],
            last=group[f"{_AT}_max"],
        )
        for group in counted.to_pylist()
    )
    return sorted(found, key=lambda tally: -tally.rows)


def read_quarantine(
    pipeline: Pipeline, settings: Settings, choice: Choice, limit: int
) -> Iterator[dict[str, Any]]:
    """Read what a pipeline put aside, as much as is asked for."""
    dataset = _open(pipeline, settings)
    if dataset is not None:
        yield from dataset.scanner(filter=choice.to_filter()).head(limit).to_pylist()


def _open(pipeline: Pipeline, settings: Settings) -> Any:
    table = _open_table(pipeline, settings)
    return None if table is None else table.to_pyarrow_dataset()


def _open_table(pipeline: Pipeline, settings: Settings) -> DeltaTable | None:
    log = DeltaLog(settings.locate(pipeline.quarantine_sink.table))
    return None if log.find_version() is None else DeltaTable(str(log.table))
