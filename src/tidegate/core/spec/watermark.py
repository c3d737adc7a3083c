"""How late rows may come."""

from __future__ import annotations

from pydantic import Field

from tidegate.core.spec.base import Column, Duration, SpecModel


class Watermark(SpecModel):
    """When what is remembered may be forgotten: this long after the newest event."""

    column: Column = Field(description="The time of the event, a column of the source.")
    delay: Duration = Field(description="How much later than the newest a row may come.")


class TimedSource(SpecModel):
    """A source whose rows may have a time of their own."""

    watermark: Watermark | None = Field(
        default=None,
        description="How late rows may come, for steps that remember; `tidegate explain` helps.",
    )
