"""What a query remembers, as far as its layout tells."""

from __future__ import annotations

from upath import UPath

from tidegate.core.storage import list_names


def count_state_partitions(checkpoint: UPath) -> int | None:
    """Count the partitions that the state is laid out by; None where there is none yet."""
    partitions = [name for name in list_names(checkpoint / "state" / "0") if name.isdigit()]
    return len(partitions) or None
