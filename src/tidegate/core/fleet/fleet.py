"""All pipelines, each read on its own, several at a time."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from tidegate.core.fleet.health import PipelineHealth, read_health
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import LoadedSpec

_AT_ONCE = 8  # on an object store each read waits for an answer; on a disk one would do


@dataclass(frozen=True)
class Fleet:
    """The health of every pipeline, by name."""

    pipelines: tuple[PipelineHealth, ...]

    def restrict(self, names: Collection[str]) -> Fleet:
        """Leave out all but the pipelines of these names."""
        return Fleet(tuple(one for one in self.pipelines if one.pipeline in names))


def read_fleet(specs: Collection[LoadedSpec], settings: Settings) -> Fleet:
    """Read how every pipeline is."""
    if not specs:
        return Fleet(())
    with ThreadPoolExecutor(min(_AT_ONCE, len(specs)), "tidegate-fleet") as pool:
        found = pool.map(partial(read_health, settings=settings), specs)
        return Fleet(tuple(sorted(found, key=lambda one: one.pipeline)))
