"""Where what belongs to a checkpoint is kept: its ledger, leases, backups and the like.

<state>/<pipeline>/checkpoint       a pipeline's own: all else is in the same folder
.../<name>, .../.<name>.tidegate    anybody's: others may have theirs beside it
"""

from __future__ import annotations

from upath import UPath

CHECKPOINT = "checkpoint"


def name_belongings(checkpoint: UPath) -> str:
    """Name the folder of what belongs to a checkpoint, as a prefix to paths below its parent."""
    return "" if checkpoint.name == CHECKPOINT else f".{checkpoint.name}.tidegate/"


def find_belongings(checkpoint: UPath) -> UPath:
    """Find the folder of what belongs to a checkpoint."""
    name = name_belongings(checkpoint).rstrip("/")
    return checkpoint.parent / name if name else checkpoint.parent
