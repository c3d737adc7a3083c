"""Writing to a table that somebody else writes to at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_TRIES = 20
"""A live run may commit every few seconds, and a swap on a busy machine take longer than that."""
_CONFLICTS = ("DELTA_CONCURRENT_", "DELTA_PROTOCOL_CHANGED", "DELTA_METADATA_CHANGED")
"""What Delta says where somebody else has written meanwhile."""

Result = TypeVar("Result")


def insist(write: Callable[[], Result]) -> Result:
    """Write once more where somebody else has written meanwhile; what is there is passed over."""
    for _ in range(_TRIES - 1):
        try:
            return write()
        except Exception as error:
            if not any(conflict in str(error) for conflict in _CONFLICTS):
                raise
    return write()
