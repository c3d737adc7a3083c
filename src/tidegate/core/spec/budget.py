"""How much one run may do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from tidegate.core.spec.base import Count, SpecModel, refuse_truth


class Budget(SpecModel):
    """What a run stops at, between two batches; the next run goes on from there."""

    max_batches: Count | None = Field(default=None, description="At the most so many batches.")
    max_minutes: Annotated[float, Field(gt=0), BeforeValidator(refuse_truth)] | None = Field(
        default=None, description="No batch is begun after so many minutes."
    )

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        if given.get("max_batches") is None and given.get("max_minutes") is None:
            yield "needs max_batches or max_minutes"
