"""Deciding, without a JVM, what there is to do for each table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Self

from tidegate.core.maintenance.book import MaintenanceBook, StepKind, TableRecord
from tidegate.core.maintenance.guard import Guard
from tidegate.core.maintenance.history import TableHistory
from tidegate.core.maintenance.logcare import plan_log
from tidegate.core.maintenance.needs import Readers
from tidegate.core.maintenance.smallfiles import plan_optimize
from tidegate.core.maintenance.step import TablePlan
from tidegate.core.maintenance.tables import OwnedTable, list_tables
from tidegate.core.maintenance.vacuum import plan_vacuum
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import LoadedSpec, find_spec, load_specs


@dataclass(frozen=True)
class PipelinePlan:
    """What there is to do for the tables of one pipeline."""

    pipeline: str
    tables: tuple[TablePlan, ...]

    @property
    def has_work(self) -> bool:
        """Whether a driver is needed."""
        return any(table.steps for table in self.tables)

    def describe(self) -> Iterator[str]:
        """Say what there is to do and why, and where there is nothing."""
        for plan in self.tables:
            yield from (f"{plan.table.name}: {line}" for line in plan.describe())


@dataclass(frozen=True)
class Planner:
    """Looks at the tables of a deployment."""

    specs: tuple[LoadedSpec, ...]
    settings: Settings

    @classmethod
    def load(cls, settings: Settings) -> Self:
        """Load all specs: readers of a table may be in any of them."""
        return cls(tuple(load_specs(settings.pipelines)), settings)

    def plan(self, name: str | None = None) -> list[PipelinePlan]:
        """Plan what there is to do for one pipeline, or for all whose specs have no mistake."""
        names = [*self._owned]
        if name:
            spec = find_spec([*self.specs], self.settings.pipelines, name)
            names = [spec.require().name]
        return [
            PipelinePlan(each, tuple(map(self.look_at, self.list_tables(each)))) for each in names
        ]

    def list_tables(self, pipeline: str) -> list[OwnedTable]:
        """List the tables that a pipeline looks after."""
        return self._owned.get(pipeline, [])

    @cached_property
    def _owned(self) -> dict[str, list[OwnedTable]]:
        sound = (spec.require() for spec in self.specs if not spec.error)
        return list_tables(sound, self.settings)

    @cached_property
    def _readers(self) -> Readers:
        return Readers(self.specs, self.settings)

    def look_at(self, table: OwnedTable, only: Iterable[StepKind] = StepKind) -> TablePlan:
        """Plan what there is to do for a table, of these kinds; one that is broken stops no other."""
        record = MaintenanceBook.of(self.settings, table.pipeline).read(table.name)
        try:
            return self._look_at(TablePlan(table), record, frozenset(only))
        except Exception as error:  # whatever it is, others are to be looked at
            return TablePlan(table).warn(f"it cannot be looked at: {error}")

    def _look_at(
        self, plan: TablePlan, record: TableRecord, kinds: frozenset[StepKind]
    ) -> TablePlan:
        table, now = plan.table, datetime.now(UTC)
        history = TableHistory(table.log)
        needs = self._readers.find_needs(table, history)
        if StepKind.OPTIMIZE in kinds:
            plan = plan_optimize(plan, history)
        if kinds & {StepKind.LOG_RETENTION, StepKind.CLEAN_LOG}:
            plan = plan_log(plan, history, needs, now)
        if StepKind.VACUUM in kinds:
            retention = Guard(history, now).find_retention(table.policy.vacuum_retention, needs)
            plan = plan_vacuum(plan, history, retention, record.steps.get(StepKind.VACUUM), now)
        return plan
