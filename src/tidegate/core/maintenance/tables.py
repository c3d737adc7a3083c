"""The Delta tables that pipelines write, each looked after by one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidegate.core.deltalog import DeltaLog
from tidegate.core.settings import Settings
from tidegate.core.sidetable import SIDE_TABLES
from tidegate.core.spec.maintenance import Maintenance
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.sinks.delta import KEYED, DeltaMode, DeltaSink
from tidegate.core.storage import list_names


@dataclass(frozen=True)
class OwnedTable:
    """A table that exists, and how it is to be looked after."""

    name: str
    """As specs name it."""
    pipeline: str
    policy: Maintenance
    url: str
    """As Spark names it."""
    log: DeltaLog
    is_clustered: bool = False
    is_appended: bool = True
    """Whether runs only ever add rows, which OPTIMIZE does not get in the way of."""


def list_tables(pipelines: Iterable[Pipeline], settings: Settings) -> dict[str, list[OwnedTable]]:
    """List the tables of each pipeline; one that several write is the first one's, by name."""
    owned: dict[str, list[OwnedTable]] = {}
    taken: set[str] = set()
    for pipeline in sorted(pipelines, key=lambda each: each.name):
        found = [t for t in _list_existing(pipeline, settings) if t.url not in taken]
        taken.update(table.url for table in found)
        owned[pipeline.name] = found
    return owned


def _list_existing(pipeline: Pipeline, settings: Settings) -> Iterator[OwnedTable]:
    for sink in (*pipeline.delta_sinks, pipeline.quarantine_sink):
        for name in _list_names(sink, settings):
            log = DeltaLog(settings.locate(name))
            if log.find_version() is not None:
                is_side = name.rpartition("/")[2] in SIDE_TABLES
                yield OwnedTable(
                    name,
                    pipeline.name,
                    pipeline.maintenance,
                    settings.locate_url(name),
                    log,
                    is_clustered=bool(sink.cluster_by) and not is_side,
                    is_appended=is_side or sink.mode is DeltaMode.APPEND,
                )


def _list_names(sink: DeltaSink, settings: Settings) -> Iterator[str]:
    if sink.route_by:
        routes = sorted(list_names(settings.locate(sink.table)))
        yield from (f"{sink.table}/{route}" for route in routes)
        return
    yield sink.table
    if sink.mode in KEYED:
        yield from (f"{sink.table}/{side}" for side in SIDE_TABLES)
