"""One thing that is wrong, or worth knowing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from tidegate.core.errors import BlockedError, TidegateError


class Severity(StrEnum):
    """How much a fault matters."""

    ERROR = "error"
    """The query cannot go on, or would lose or double rows."""
    WARNING = "warning"
    """It goes on, and somebody should look."""
    INFO = "info"


@dataclass(frozen=True)
class Fault:
    """What is wrong, in which file, what Spark would do, and what to do."""

    code: str
    severity: Severity
    file: str
    message: str
    remedy: str

    @classmethod
    def of(cls, file: str, error: TidegateError, code: str) -> Fault:
        """Make a fault of an error that was raised for it, by its own code if it has one."""
        told = " ".join(filter(None, (error.fact, error.cause)))
        own = error.code if isinstance(error, BlockedError) else code
        return cls(own, Severity.ERROR, file, told, error.remedy)

    def __str__(self) -> str:
        return " ".join(filter(None, (self.message, self.remedy)))


def list_errors(faults: Iterable[Fault]) -> list[Fault]:
    """List the faults that keep a query from going on."""
    return [fault for fault in faults if fault.severity is Severity.ERROR]
