"""What the API answers from: the deployment's specs and files, remembered for a few seconds.

Whoever asks for what is being read already waits for that, so that many open pages cost one reading.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Condition, Thread
from typing import Any, TypeVar

from cachetools import TTLCache, cached

from tidegate.airflow.connection import read_airflow_connection
from tidegate.core.doctor.fault import Fault
from tidegate.core.doctor.pipeline import examine_pipeline
from tidegate.core.errors import SpecError
from tidegate.core.fleet.catalog import Catalog
from tidegate.core.fleet.fleet import Fleet, read_fleet
from tidegate.core.lag import PartitionLag, measure_lag
from tidegate.core.quarantine import Choice, Tally, read_quarantine, tally_quarantine
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import LoadedSpec

T = TypeVar("T")

_FLEET_SECONDS = 5
_SLOW_SECONDS = 30
_MOST_REMEMBERED = 100
_SLOW_AT_ONCE = 4


class Deployment:
    """The pipelines of a deployment, as the API shows them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.catalog = Catalog(settings.pipelines)
        # Brokers and tables may take their time: they get threads of their own, and few.
        self._pool = ThreadPoolExecutor(_SLOW_AT_ONCE, "tidegate-slow")
        self.read_fleet = _remember(self._read_fleet, _FLEET_SECONDS)
        self._examine = _remember(self._examine_anew, _SLOW_SECONDS)
        self._measure = _remember(self._measure_anew, _SLOW_SECONDS)
        self._look_aside = _remember(self._look_aside_anew, _SLOW_SECONDS)

    def warm_up(self) -> None:
        """Read the specs before somebody waits for them; hundreds of them take a second."""
        Thread(target=self.list_specs, name="tidegate-specs", daemon=True).start()

    def list_specs(self) -> dict[str, LoadedSpec]:
        """List all specs by the names of their pipelines; a folder that is not there has none."""
        try:
            return self.catalog.list_specs()
        except (SpecError, OSError):
            return {}

    async def examine(self, name: str) -> list[Fault]:
        """Find what is wrong with a pipeline."""
        return await self._run_slowly(self._examine, name)

    async def measure_lag(self, name: str) -> list[PartitionLag]:
        """Ask the broker how far each partition is behind."""
        return await self._run_slowly(self._measure, name)

    async def look_aside(self, name: str, limit: int) -> tuple[list[Tally], list[dict[str, Any]]]:
        """Count what a pipeline put aside, and read the newest of it."""
        return await self._run_slowly(self._look_aside, name, limit)

    async def _run_slowly(self, work: Callable[..., T], *arguments: Any) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, work, *arguments)

    def _read_fleet(self) -> Fleet:
        return read_fleet(self.list_specs().values(), self.settings)

    def _examine_anew(self, name: str) -> list[Fault]:
        pipeline = self.list_specs()[name].require()
        return examine_pipeline(pipeline, self.settings, read_airflow_connection)

    def _measure_anew(self, name: str) -> list[PartitionLag]:
        pipeline = self.list_specs()[name].require()
        return measure_lag(pipeline, self.settings, read_airflow_connection)

    def _look_aside_anew(self, name: str, limit: int) -> tuple[list[Tally], list[dict[str, Any]]]:
        pipeline = self.list_specs()[name].require()
        rows = read_quarantine(pipeline, self.settings, Choice(), limit)
        return tally_quarantine(pipeline, self.settings), list(rows)


def _remember(work: Callable[..., T], seconds: float) -> Callable[..., T]:
    cache: TTLCache[Any, T] = TTLCache(_MOST_REMEMBERED, seconds)
    return cached(cache, condition=Condition())(work)
