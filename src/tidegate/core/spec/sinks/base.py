"""What every sink may say: which rows and columns it takes, and what it expects of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from tidegate.core.spec.base import Column, Name, SpecModel
from tidegate.core.spec.expectation import Condition, Expectation, find_rule_twins

MAIN = "main"
"""The name of a sink that is given none."""

QUARANTINE = "quarantine"
"""The name of the sink that every pipeline may have beside its own."""


class SinkModel(SpecModel):
    """A place that rows go to."""

    name: Name = Field(
        default=MAIN,
        description="By which the sink knows its batches: never change it on a live pipeline.",
    )
    where: Condition | None = Field(
        default=None, description="Only rows that meet this SQL condition."
    )
    columns: tuple[Column, ...] = Field(default=(), description="Only these columns.")
    expect: tuple[Expectation, ...] = Field(
        default=(), description="What this sink expects of its rows."
    )

    @property
    def rules(self) -> tuple[Expectation, ...]:
        """What the sink expects of its rows, said or not."""
        return self.expect

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        if given.get("name") == QUARANTINE:
            yield f"name must not be {QUARANTINE!r}: tidegate writes what it puts aside by it"
        yield from find_twins("columns", given.get("columns"))
        yield from find_rule_twins(given.get("expect"))


def find_twins(field: str, columns: Any) -> Iterator[str]:
    """Yield the columns that a field names more than once."""
    lowered = [str(c).lower() for c in columns] if isinstance(columns, list | tuple) else []
    twice = sorted(column for column, count in Counter(lowered).items() if count > 1)
    if twice:
        yield f"{field} names {', '.join(twice)} more than once; Spark ignores case"
