"""What becomes of a checkpoint under a spec that is about to be deployed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """What a spec and a checkpoint make together, the worst last."""

    NEW = "new"
    """There is no checkpoint yet."""
    COMPATIBLE = "compatible"
    UNKNOWN = "unknown"
    """It could not be told."""
    MIGRATE = "migrate"
    """The query can go on after something was done."""
    FRESH = "fresh"
    """The query needs a checkpoint of its own, and to read its source anew."""

    @property
    def rank(self) -> int:
        """How bad it is."""
        return list(Verdict).index(self)

    @property
    def is_fine(self) -> bool:
        """Whether the spec can be deployed as it is."""
        return self in (Verdict.NEW, Verdict.COMPATIBLE)


@dataclass(frozen=True)
class Difference:
    """One thing that is not as it was, what it leads to, and what to do."""

    code: str
    verdict: Verdict
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.message, self.remedy)))


@dataclass(frozen=True)
class Compatibility:
    """A pipeline's spec against its checkpoint."""

    pipeline: str
    checkpoint: str
    verdict: Verdict
    differences: tuple[Difference, ...] = ()

    @classmethod
    def of(cls, pipeline: str, checkpoint: str, differences: Iterable[Difference]) -> Compatibility:
        """Take the worst of all differences for the whole."""
        found = tuple(differences)
        verdicts = (difference.verdict for difference in found)
        worst = max(verdicts, key=lambda verdict: verdict.rank, default=Verdict.COMPATIBLE)
        return cls(pipeline, checkpoint, worst, found)

    def to_json(self) -> dict[str, Any]:
        """Spell the whole for a program."""
        return asdict(self)
