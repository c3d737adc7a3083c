"""What a look at the source says about the next run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.core.checkpoint.progress import Progress, State
from tidegate.core.target import Target


@dataclass(frozen=True)
class Finding:
    """What is to be done, and why."""

    reason: str
    target: Target | None = None
    """None where there is nothing to do."""
    warning: str | None = None
    source_ids: Mapping[str, str] = field(default_factory=dict)
    """By which the source is known again, such as topics' ids."""


def mention_pending(progress: Progress) -> str:
    """Say that a batch is pending, after what there is to do."""
    return f", batch {progress.planned_batch} is pending" if progress.state is State.PENDING else ""
