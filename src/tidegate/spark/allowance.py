"""What is left of a run's budget."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.core.ledger import Stop
from tidegate.core.spec.budget import Budget


class BudgetSpentError(Exception):
    """Ends a query before a batch that is beyond its run's budget; nothing of it was written."""

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        super().__init__(stop.reason)


@dataclass
class Allowance:
    """Counts the batches and the time of one run."""

    budget: Budget | None
    clock: Callable[[], float] = time.monotonic
    batches: int = 0

    def __post_init__(self) -> None:
        self._began = self.clock()

    def take(self, batch_id: int) -> None:
        """Take a batch, or refuse it: a run does one at the least, so that it gets further."""
        reason = self._find_limit() if self.budget and self.batches else None
        if reason:
            raise BudgetSpentError(Stop(reason, batch_id - 1))
        self.batches += 1

    def _find_limit(self) -> str | None:
        most = self.budget.max_batches if self.budget else None
        minutes = self.budget.max_minutes if self.budget else None
        if most is not None and self.batches >= most:
            return f"budget.max_batches of {most:,} is used up"
        if minutes is not None and self.clock() - self._began >= minutes * 60:
            return f"budget.max_minutes of {minutes:g} are used up, after {self.batches:,} batches"
        return None
