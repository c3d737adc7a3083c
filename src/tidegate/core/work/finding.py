"""What a look at the source says about the next run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.core.checkpoint.progress import Progress, State
from tidegate.core.target import AllTargets, Target
from tidegate.core.waiting import Waiting


@dataclass(frozen=True)
class Finding:
    """What is to be done, and why."""

    reason: str
    target: Target | None = None
    """None where there is nothing to do."""
    warning: str | None = None
    source_ids: Mapping[str, str] = field(default_factory=dict)
    """By which the source is known again, such as topics' ids."""
    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    """What waits, by source; a source whose end nobody can tell is not in it."""


def combine_findings(findings: Mapping[str, Finding]) -> Finding:
    """Make one finding of those of several sources."""
    if len(findings) == 1:
        return next(iter(findings.values()))
    targets = tuple(
        found.target
        for found in findings.values()
        if found.target and not isinstance(found.target, AllTargets)
    )
    warnings = [f"{name}: {found.warning}" for name, found in findings.items() if found.warning]
    return Finding(
        "; ".join(f"{name}: {found.reason}" for name, found in findings.items()),
        AllTargets(targets) if targets else None,
        "; ".join(warnings) or None,
        {
            f"{name}/{key}": value
            for name, found in findings.items()
            for key, value in found.source_ids.items()
        },
        {name: one for found in findings.values() for name, one in found.waiting.items()},
    )


def pick_source_ids(known: Mapping[str, str], source: str) -> Mapping[str, str]:
    """Pick the ids of one source out of those of all, as they were combined."""
    prefix = f"{source}/"
    own = {
        key.removeprefix(prefix): value for key, value in known.items() if key.startswith(prefix)
    }
    return own or known


def mention_pending(progress: Progress) -> str:
    """Say that a batch is pending, after what there is to do."""
    return f", batch {progress.planned_batch} is pending" if progress.state is State.PENDING else ""
