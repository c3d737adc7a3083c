"""What a table needs, step by step, and why; or why it needs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from tidegate.core.maintenance.book import StepKind
from tidegate.core.maintenance.tables import OwnedTable


@dataclass(frozen=True)
class Step:
    """Something to be done to a table, and why."""

    kind: StepKind
    reason: str
    span: timedelta | None = None
    """For how long something is to be kept."""


@dataclass(frozen=True)
class TablePlan:
    """What there is to do for a table."""

    table: OwnedTable
    steps: tuple[Step, ...] = ()
    needless: tuple[str, ...] = ()
    """Why other steps are not needed."""
    warnings: tuple[str, ...] = ()

    def do(self, kind: StepKind, reason: str, span: timedelta | None = None) -> TablePlan:
        """Add a step."""
        return replace(self, steps=(*self.steps, Step(kind, reason, span)))

    def pass_over(self, why: str) -> TablePlan:
        """Say why a step is not needed."""
        return replace(self, needless=(*self.needless, why))

    def warn(self, told: str) -> TablePlan:
        """Say what a person should know."""
        return replace(self, warnings=(*self.warnings, told))

    def describe(self) -> Iterator[str]:
        """Say what there is to do and why, and where there is nothing."""
        yield from (f"{step.kind}: {step.reason}" for step in self.steps)
        if not self.steps:
            yield f"nothing to do: {'; '.join(self.needless) or 'its policy says so'}"
        yield from self.warnings
