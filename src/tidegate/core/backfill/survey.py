"""What of a range that was asked for is there, found without a JVM."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from tidegate.core.backfill.holding import count_held, tell_held
from tidegate.core.backfill.range import (
    PLACES,
    DeltaRange,
    FilesRange,
    KafkaRange,
    OffsetRange,
    Range,
)
from tidegate.core.backfill.request import Mode, Request
from tidegate.core.checkpoint.filelog import read_file_log
from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.connection import KafkaConnection, ReadConnection, read_connection
from tidegate.core.deltalog import DeltaLog
from tidegate.core.deltatable import DeltaRows
from tidegate.core.ends.files import LandedFile, find_backlog, list_landing, refuse_patterns
from tidegate.core.ends.kafka import KafkaEnds, Offsets, TopicEnds
from tidegate.core.errors import BackfillError
from tidegate.core.settings import Settings
from tidegate.core.spec.files import FilesSource
from tidegate.core.spec.kafka import KafkaSource
from tidegate.core.spec.pipeline import ONLY_SOURCE, Pipeline
from tidegate.core.spec.source import DeltaSource
from tidegate.core.storage import list_names

_LOOKS_AT_ONCE = 16
_TOLD = 3
"""How many of a list are named."""


@dataclass(frozen=True)
class Found:
    """A range as it is in the source now."""

    range: Range
    rows: int | None = None
    """How many rows it has, where the source's log tells."""


@dataclass(frozen=True)
class Survey:
    """Looks for what was asked for, and refuses a range that is not there any more, or not yet."""

    request: Request
    pipeline: Pipeline
    settings: Settings
    connect: ReadConnection = read_connection

    def find(self) -> Found:
        """Find the range as it is in the source now."""
        self._refuse_state()
        match self.pipeline.source:
            case KafkaSource() as source:
                found = Found(self._find_offsets(source))
            case DeltaSource() as source:
                log = DeltaLog(self.settings.locate(source.table))
                versions = self._find_versions(log)
                found = Found(versions, _count_rows(log, source, versions))
            case FilesSource() as source:
                found = Found(self._find_files(source))
            case _:
                raise AssertionError(self.pipeline.source)
        if found.range.size <= 0:
            raise BackfillError("the range is empty: nothing in the source lies in it")
        if self.request.mode is not Mode.MERGE:
            self._refuse_unread(found.range)
            self._refuse_tables(found.range)
        return found

    def _refuse_tables(self, found: Range) -> None:
        """Refuse tables that do not tell of their rows, or have what is to be added."""
        problems = []
        for sink in self.pipeline.delta_sinks:
            rows = DeltaRows.open(self.settings.locate(sink.table))
            lacking = [name for name in PLACES[found.kind] if rows and name not in rows.columns]
            if lacking:
                problems.append(
                    f"the rows of {sink.table} have no {', '.join(lacking)}, so that nobody can tell "
                    "which of them came from the range; have the steps keep it, in a new table"
                )
            elif self.request.mode is Mode.APPEND:
                held = count_held(self.pipeline, self.settings, sink, found)
                problems += [tell_held(sink.table, held)] if held else []
        if problems:
            raise BackfillError(*problems)

    def _refuse_state(self) -> None:
        """Refuse a pipeline whose live query remembers rows, as far as its checkpoint tells."""
        if list_names(self.settings.checkpoint_of(self.pipeline.name) / "state"):
            raise BackfillError(tell_remembering(self.pipeline.name))

    def _refuse_unread(self, found: Range) -> None:
        """Refuse what live runs have yet to read: they would bring its rows once more."""
        checkpoint = self.settings.checkpoint_of(self.pipeline.name)
        progress = read_progress(checkpoint)
        position = progress.find_committed(ONLY_SOURCE) if progress.is_readable else None
        match found:
            case KafkaRange(offsets):
                unread = [
                    f"{topic}-{number} from {known:,} on"
                    for topic, numbers in offsets.items()
                    for number, (start, end) in numbers.items()
                    if start < end
                    and (known := (position or {}).get(topic, {}).get(number, 0)) < end
                ]
            case DeltaRange(_, last):
                # Inside the first snapshot, files of any version may still be unread.
                is_past = position is not None and not position["isStartingVersion"]
                read = position["reservoirVersion"] if position and is_past else 0
                unread = [f"versions from {read} on"] if last >= read else []
            case FilesRange(paths):
                waiting = self._list_waiting(self.pipeline.source, position)
                unread = [path for path in paths if path in waiting]
        if unread:
            raise BackfillError(
                f"live runs of {self.pipeline.name} have not committed {_name_some(unread)} yet, and "
                "would bring those rows once more; leave them out, or let a run commit them first"
            )

    def _list_waiting(self, source: Any, position: Any) -> set[str]:
        """List the files that live runs have yet to commit; those too old for them are not."""
        up_to = position["logOffset"] if position else -1
        checkpoint = self.settings.checkpoint_of(self.pipeline.name)
        backlog = find_backlog(
            list_landing(self.settings.locate(source.path), source),
            read_file_log(checkpoint, ONLY_SOURCE, up_to=up_to) if position else [],
            committed_offset=up_to,
            max_age_ms=int(source.max_file_age.total_seconds() * 1000),
        )
        return set(backlog.paths)

    def _find_offsets(self, source: KafkaSource) -> KafkaRange:
        options = self.connect(source.connection)
        cluster = KafkaEnds(KafkaConnection.from_options(source.connection, options))
        ends = cluster.read(source)
        if self.request.offsets is None:
            return self._find_times(cluster, source, ends)
        asked: OffsetRange = {
            topic: {str(number): span for number, span in spans.items()}
            for topic, spans in self.request.offsets.items()
        }
        problems = list(_find_missing_offsets(asked, ends))
        if problems:
            raise BackfillError(*problems)
        return KafkaRange(asked)

    def _find_times(self, cluster: KafkaEnds, source: KafkaSource, ends: TopicEnds) -> KafkaRange:
        def find(at: datetime | None, otherwise: Offsets) -> Offsets:
            return otherwise if at is None else cluster.find_offsets_at(source, ends, at)

        start = find(self.request.since, ends.beginnings)
        gone = [
            f"{topic}-{number} before {first:,}"
            for topic, numbers in ends.beginnings.items()
            for number, first in numbers.items()
            if self.request.since and start[topic][number] == first > 0
        ]
        if gone:
            raise BackfillError(
                f"since: records of {_name_some(gone)} have expired, and some of them may be of the "
                "range; take a later time, or the offsets that are left"
            )
        end = find(self.request.until, ends.ends)
        return KafkaRange(
            {
                topic: {
                    number: (start[topic][number], max(start[topic][number], last))
                    for number, last in numbers.items()
                }
                for topic, numbers in end.items()
            }
        )

    def _find_versions(self, log: DeltaLog) -> DeltaRange:
        newest = log.require_version()
        earliest = log.find_earliest_version() or 0
        request = self.request
        if request.since is None and request.until is None:
            first = 0 if request.first_version is None else request.first_version
            last = newest if request.last_version is None else request.last_version
        else:
            first = self._find_version_at(log, earliest, newest, request.since, earliest)
            self._refuse_cleaned(log, earliest)
            last = self._find_version_at(log, earliest, newest, request.until, newest + 1) - 1
        problems = []
        if first < earliest:
            problems.append(
                f"first_version: the log of {log.table} has versions {earliest} to {newest}, and "
                f"{first} is gone; begin at {earliest}"
            )
        if last > newest:
            problems.append(f"last_version: the newest version of {log.table} is {newest}")
        if problems:
            raise BackfillError(*problems)
        return DeltaRange(first, last)

    def _refuse_cleaned(self, log: DeltaLog, earliest: int) -> None:
        since = self.request.since
        begins_ms = log.read_commit(earliest).timestamp_ms if since and earliest else None
        if since and begins_ms and begins_ms > _to_ms(since):
            began = datetime.fromtimestamp(begins_ms / 1000, UTC).isoformat()
            raise BackfillError(
                f"since: the log of {log.table} begins with version {earliest}, of {began}, and what "
                "came before is gone; begin there"
            )

    @staticmethod
    def _find_version_at(
        log: DeltaLog, earliest: int, newest: int, at: datetime | None, otherwise: int
    ) -> int:
        """Find the first version of a time or later, by as few looks as can be."""
        if at is None:
            return otherwise
        versions = range(earliest, newest + 1)
        wanted = int(at.timestamp() * 1000)
        return earliest + bisect_left(
            versions, wanted, key=lambda version: log.read_commit(version).timestamp_ms
        )

    def _find_files(self, source: FilesSource) -> FilesRange:
        folder = self.settings.locate(source.path)
        landed = list_landing(folder, source)
        if self.request.paths is None:
            paths = tuple(sorted(file.path for file in landed if self._is_wanted(file)))
        else:
            paths = self._find_paths({file.path for file in landed}, folder.path.rstrip("/"))
        refuse_patterns(paths, folder.path)
        return FilesRange(paths)

    def _is_wanted(self, file: LandedFile) -> bool:
        request = self.request
        name = file.path.rpartition("/")[2]
        return (
            (request.glob is None or fnmatchcase(name, request.glob))
            and (request.since is None or file.modified_ms >= _to_ms(request.since))
            and (request.until is None or file.modified_ms < _to_ms(request.until))
        )

    def _find_paths(self, landed: set[str], root: str) -> tuple[str, ...]:
        asked = [path.strip() for path in self.request.paths or () if path.strip()]
        whole = [
            path if path.startswith("/") or ":/" in path else f"{root}/{path}" for path in asked
        ]
        missing = [path for path in whole if path not in landed]
        if missing:
            raise BackfillError(f"paths: not in {root} (any more): {_name_some(missing)}")
        return tuple(dict.fromkeys(whole))


def _find_missing_offsets(asked: OffsetRange, ends: TopicEnds) -> Iterator[str]:
    for topic, spans in asked.items():
        for number, (start, end) in spans.items():
            place = f"offsets: {topic}-{number}"
            first = ends.beginnings.get(topic, {}).get(number)
            if first is None:
                yield f"{place} is not read by the pipeline"
                continue
            last = ends.ends[topic][number]
            if start >= end:
                yield f"{place} must begin before it ends, not at {start:,} and {end:,}"
            elif start < first:
                left = (
                    f"{first:,} to {last:,} are left of it"
                    if end > first
                    else "nothing is left of it"
                )
                yield f"{place} begins at {start:,}, which has expired; {left}"
            elif end > last:
                yield f"{place} ends at {last:,}, before {end:,}"


def tell_remembering(pipeline: str) -> str:
    """Say why a pipeline that remembers rows is refused."""
    return (
        f"pipeline: the steps of {pipeline} remember rows, and of a range alone they would give other "
        "results; give the pipeline a new name and a new table, and read the source anew"
    )


def _count_rows(log: DeltaLog, source: DeltaSource, versions: DeltaRange) -> int | None:
    """Count the rows of some versions as their log tells them; refuse those that cannot be read."""
    changes = [log.read_change(number) for number in range(versions.first, versions.last + 1)]
    if source.change_data_feed:
        needed = {
            change.version: change.recorded or change.added + change.removed for change in changes
        }
    else:
        refused = [str(change.version) for change in changes if change.removed]
        if refused and not source.skip_change_commits:
            raise BackfillError(
                f"versions {_name_some(refused)} of {source.table} changed or deleted rows, which a "
                "stream of it refuses too; say skip_change_commits or change_data_feed in the source"
            )
        changes = [change for change in changes if not change.removed]
        needed = {change.version: change.added for change in changes}
    _refuse_vacuumed(log, versions, needed)
    counts = [None if source.change_data_feed else change.rows for change in changes]
    return None if None in counts else sum(count or 0 for count in counts)


def _refuse_vacuumed(
    log: DeltaLog, versions: DeltaRange, needed: dict[int, tuple[str, ...]]
) -> None:
    files = [(version, path) for version, paths in needed.items() for path in paths]
    with ThreadPoolExecutor(_LOOKS_AT_ONCE) as pool:
        there = pool.map(log.has_file, (path for _, path in files))
        gone = sorted(
            {version for (version, _), is_there in zip(files, there, strict=True) if not is_there}
        )
    if not gone:
        return
    left = (
        f"versions {gone[-1] + 1} to {versions.last} are left of it"
        if gone[-1] < versions.last
        else "its end is gone too"
    )
    raise BackfillError(
        f"the files of versions {_name_some(list(map(str, gone)))} of {log.table} are gone, by VACUUM or "
        f"by hand; {left}"
    )


def _name_some(names: list[str]) -> str:
    more = f" and {len(names) - _TOLD:,} more" if len(names) > _TOLD else ""
    return ", ".join(names[:_TOLD]) + more


def _to_ms(at: datetime) -> int:
    return int(at.timestamp() * 1000)
