"""The log that Spark's file sink keeps beside its files, read without a JVM."""

from __future__ import annotations

from upath import UPath

from tidegate.core.spec.sinks.files import METADATA
from tidegate.core.storage import list_names


def find_newest_batch(folder: UPath) -> int | None:
    """Find the newest batch that a folder holds; None where it holds none."""
    names = (name.removesuffix(".compact") for name in list_names(folder / METADATA))
    return max((int(name) for name in names if name.isdigit()), default=None)
