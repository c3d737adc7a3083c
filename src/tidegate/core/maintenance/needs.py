"""What others are yet to read of a table: pipelines, backfills and replays that are not done."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tidegate.core.backfill.book import Backfills
from tidegate.core.backfill.range import DeltaRange
from tidegate.core.checkpoint.position import SourceKind, classify_position, describe_position
from tidegate.core.checkpoint.progress import Progress, read_progress
from tidegate.core.errors import TidegateError
from tidegate.core.maintenance.history import TableHistory
from tidegate.core.maintenance.tables import OwnedTable
from tidegate.core.replay import Replays
from tidegate.core.settings import Settings
from tidegate.core.spec.base import NAME_PATTERN
from tidegate.core.spec.loader import LoadedSpec
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.source import DeltaSource
from tidegate.core.storage import list_names


@dataclass(frozen=True)
class Need:
    """What somebody is yet to read of a table."""

    who: str
    why: str
    """Such as `has read up to version 41`."""
    first: int
    """The first version whose changes are to be read."""
    last: int | None = None
    """The last one; None where there is no end."""
    snapshot: int | None = None
    """The version of which all files are to be read, too."""
    takes_changes: bool = True
    """Whether what was deleted is to be read as well."""

    @property
    def first_logged(self) -> int:
        """The first version whose log is needed."""
        return self.first if self.snapshot is None else self.snapshot


@dataclass(frozen=True)
class Readers:
    """All that may read tables in a deployment."""

    specs: tuple[LoadedSpec, ...]
    settings: Settings

    def find_needs(self, table: OwnedTable, history: TableHistory) -> list[Need]:
        """Find what is yet to be read of a table."""
        found: list[Need] = []
        for spec in self.specs:
            if spec.pipeline is None:
                found += self._find_by_checkpoint(spec.name, history)
        for pipeline, name, source in self._sources.get(table.url, ()):
            found += self._find_of_run(pipeline, name, source, history)
            found += self._find_of_backfills(pipeline, history)
        for pipeline in self._quarantines.get(table.url, ()):
            found += self._find_of_replays(pipeline, history)
        return [need for need in found if need.first <= history.newest or need.snapshot is not None]

    @cached_property
    def _sources(self) -> dict[str, list[tuple[Pipeline, str, DeltaSource]]]:
        """Who reads a table as a stream, by the table."""
        found = defaultdict(list)
        for pipeline in filter(None, (spec.pipeline for spec in self.specs)):
            for name, source in pipeline.inputs.items():
                if isinstance(source, DeltaSource):
                    url = self.settings.locate_url(source.table)
                    found[url].append((pipeline, name, source))
        return found

    @cached_property
    def _quarantines(self) -> dict[str, list[Pipeline]]:
        """Whose quarantine a table is."""
        found = defaultdict(list)
        for pipeline in filter(None, (spec.pipeline for spec in self.specs)):
            found[self.settings.locate_url(pipeline.quarantine_sink.table)].append(pipeline)
        return found

    def _find_by_checkpoint(self, name: str, history: TableHistory) -> Iterator[Need]:
        """Find what a pipeline reads whose spec has mistakes: its checkpoint knows the table."""
        if not re.fullmatch(NAME_PATTERN, name):
            return  # what a broken spec claims as its name may be anything
        progress = read_progress(self.settings.checkpoint_of(name))
        if not progress.is_readable:
            yield _need_all(name, "has a checkpoint that cannot be read", history)
        if list_names(self.settings.state_of(name) / "backfills"):
            yield _need_all(name, "has backfills, and a spec with mistakes", history)
        for source in progress.sources:
            if source.committed is not None:
                yield from _judge_position(name, source.committed, history, takes_changes=True)
            elif source.planned is not None:
                # Where its first batch begins, only the spec could tell.
                yield _need_all(name, "has a first batch to go on with", history)

    def _find_of_run(
        self, pipeline: Pipeline, name: str, source: DeltaSource, history: TableHistory
    ) -> Iterator[Need]:
        progress = read_progress(self.settings.checkpoint_of(pipeline.name))
        if not progress.is_readable:
            yield _need_all(pipeline.name, "has a checkpoint that cannot be read", history)
            return
        position = _find_position(progress, name)
        takes_changes = source.change_data_feed
        if position is not None:
            yield from _judge_position(pipeline.name, position, history, takes_changes)
            return
        first = _find_start(source, history)
        if first is not None:
            why = f"has not begun, and is to read from version {first} on"
            yield Need(pipeline.name, why, first, takes_changes=takes_changes)

    def _find_of_backfills(self, pipeline: Pipeline, history: TableHistory) -> Iterator[Need]:
        book = Backfills(pipeline, self.settings)
        for backfill_id in book.list_ids():
            who = f"{backfill_id} of {pipeline.name}"
            try:
                backfill, done = book.read(backfill_id), book.read_done(backfill_id)
            except (TidegateError, ValueError):
                yield _need_all(who, "cannot be read", history)
                continue
            left = [part for number, part in enumerate(backfill.slices) if number not in done]
            spans = [part for part in left if isinstance(part, DeltaRange)]
            if spans:
                first, last = min(s.first for s in spans), max(s.last for s in spans)
                yield Need(who, f"is yet to read versions {first} to {last}", first, last)

    def _find_of_replays(self, pipeline: Pipeline, history: TableHistory) -> Iterator[Need]:
        replays = Replays(pipeline, self.settings)
        for replay_id in replays.list_ids():
            who = f"{replay_id} of {pipeline.name}"
            try:
                replay = replays.read(replay_id)
            except (TidegateError, ValueError):
                yield _need_all(who, "cannot be read", history)
                continue
            if replay.result is None:
                why = f"is not finished, and reads version {replay.version}"
                yield Need(who, why, history.newest + 1, snapshot=replay.version)


def _find_position(progress: Progress, name: str) -> Mapping[str, Any] | None:
    """Find from where on a source is yet to be read; None where its first batch is to begin."""
    found = next((source for source in progress.sources if source.source == name), None)
    if found is None or found.committed is not None:
        return found.committed if found else None
    # Of a first batch that is pending, the snapshot that it reads is settled, and no more.
    is_delta = found.kind is SourceKind.DELTA
    return found.planned if is_delta and found.planned.get("isStartingVersion") else None


def _judge_position(
    who: str, position: Mapping[str, Any], history: TableHistory, takes_changes: bool
) -> Iterator[Need]:
    if classify_position(position) is not SourceKind.DELTA:
        return  # of another source: the pipeline cannot go on with this one
    if position["reservoirId"] != history.log.read_table_id(history.newest):
        return  # another table, or one that was deleted and created anew
    version = int(position["reservoirVersion"])
    if position.get("isStartingVersion"):
        why = f"is about to read the snapshot of version {version}"
        yield Need(who, why, version + 1, snapshot=version, takes_changes=takes_changes)
    else:
        why = f"has read {describe_position(position)}"
        yield Need(who, why, version, takes_changes=takes_changes)


def _find_start(source: DeltaSource, history: TableHistory) -> int | None:
    if source.starting_timestamp is not None:
        return history.find_first_since(source.starting_timestamp.timestamp() * 1000)
    return source.starting_version


def _need_all(who: str, why: str, history: TableHistory) -> Need:
    return Need(who, why, history.earliest)
