"""How rows passed the rules that they were held against."""

from __future__ import annotations

from dataclasses import dataclass

ALL_SINKS = ""
"""By which the rules of all sinks are known among those of each."""


@dataclass(frozen=True)
class Passage:
    """How many rows came to some rules, went on, and were put aside; the rest was dropped."""

    given: int
    kept: int
    aside: int

    @property
    def dropped(self) -> int:
        """How many rows were left out without being put aside."""
        return self.given - self.kept - self.aside
