"""The two logs of a checkpoint: `offsets/` says what was planned, `commits/` what was done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from upath import UPath

from tidegate.core.checkpoint.lines import (
    corrupt,
    parse_json,
    parse_object,
    read_lines,
    read_number,
    read_text,
    split_lines,
)
from tidegate.core.errors import CorruptLogError, NotACheckpointError
from tidegate.core.storage import list_names

OFFSET_LOG_VERSION = 2
COMMIT_LOG_VERSION = 3

_MARKERS = frozenset({"metadata", "offsets", "commits"})
_NAMED_SOURCES_VERSION = 2
_NO_OFFSET = "-"
_RELIST_ATTEMPTS = 5


@dataclass(frozen=True)
class OffsetEntry:
    """What Spark planned for one batch: where each source's batch ends."""

    batch_id: int
    sources: Mapping[str, Any]
    watermark_ms: int | None = None
    timestamp_ms: int | None = None
    is_named: bool = False
    """Whether its sources go by names of their own, and so may come and go."""
    conf: Mapping[str, Any] = field(default_factory=dict)
    """The settings that the query keeps for as long as it keeps its checkpoint."""


@dataclass(frozen=True)
class CommitEntry:
    """A micro-batch whose commit file exists."""

    batch_id: int
    next_watermark_ms: int | None = None


@dataclass(frozen=True)
class CheckpointLogs:
    """The ends of both logs, read commits first so that a race can only look unfinished."""

    path: str
    query_id: str | None
    committed: CommitEntry | None = None
    committed_offsets: OffsetEntry | None = None
    planned: OffsetEntry | None = None
    has_start_of_planned: bool = True
    """Whether the offsets of the batch before the planned one, its start, are there."""

    @property
    def lacks_committed_offsets(self) -> bool:
        """Whether a batch is committed whose offsets are not there."""
        return self.committed is not None and self.committed_offsets is None


def read_logs(checkpoint: UPath) -> CheckpointLogs:
    """Read the newest entries of both logs.

    Reads a handful of files however long the history is. A batch that is purged between the
    listing and the reading makes it list again.
    """
    earlier = None
    for _ in range(_RELIST_ATTEMPTS):
        try:
            logs = _read_logs_once(checkpoint)
        except FileNotFoundError as error:
            vanished = str(error)
            continue
        # Offsets that are gone may have been purged between the listings: then the next look has
        # other commits. Only what is the same twice is so.
        if not logs.lacks_committed_offsets or logs == earlier:
            return logs
        earlier, vanished = logs, "offsets"
    raise CorruptLogError(
        f"Checkpoint {checkpoint} keeps changing while it is read ({vanished}).",
        cause="Several queries may be using it at once.",
        remedy="Stop all but one of them.",
    )


def require_checkpoint(checkpoint: UPath) -> None:
    """Refuse a path that exists as something else, or not at all."""
    if not checkpoint.exists():
        raise NotACheckpointError(
            f"There is no checkpoint at {checkpoint}: the path does not exist.",
            remedy="Give the folder that a query has as its checkpointLocation.",
        )
    if not checkpoint.is_dir():
        raise NotACheckpointError(
            f"{checkpoint} is a file, and a checkpoint is a folder.",
            remedy="Give the folder that a query has as its checkpointLocation.",
        )
    names = list_names(checkpoint)
    if names and _MARKERS.isdisjoint(names):
        raise NotACheckpointError(
            f"{checkpoint} is not a checkpoint: it has none of metadata, offsets/ and commits/.",
            cause=f"It holds {', '.join(sorted(names)[:5])}.",
            remedy="Give the folder that a query has as its checkpointLocation.",
        )


def _read_logs_once(checkpoint: UPath) -> CheckpointLogs:
    commit_ids = list_batches(checkpoint / "commits")
    offset_ids = list_batches(checkpoint / "offsets")
    query_id = _find_query_id(checkpoint, has_batches=bool(commit_ids or offset_ids))
    newest_commit = max(commit_ids, default=None)
    newest_offset = max(offset_ids, default=None)
    committed = committed_offsets = planned = None
    if newest_commit is not None:
        committed = read_commit(checkpoint / "commits" / str(newest_commit))
        if newest_commit in offset_ids:
            committed_offsets = read_offsets(checkpoint / "offsets" / str(newest_commit))
    if newest_offset is not None:
        planned = (
            committed_offsets
            if committed_offsets and newest_offset == newest_commit
            else read_offsets(checkpoint / "offsets" / str(newest_offset))
        )
    return CheckpointLogs(
        path=str(checkpoint),
        query_id=query_id,
        committed=committed,
        committed_offsets=committed_offsets,
        planned=planned,
        has_start_of_planned=not newest_offset or newest_offset - 1 in offset_ids,
    )


def list_batches(folder: UPath) -> set[int]:
    """List the batches that a log has an entry of."""
    try:
        names = list_names(folder)
    except NotADirectoryError:
        if not folder.exists():
            raise  # what it would be in is a file
        raise corrupt(str(folder), "it is a file, and should be a folder") from None
    # Temporary files and checksums share the folder; a batch's own file is all digits.
    return {int(name) for name in names if name.isascii() and name.isdigit()}


def read_query_id(checkpoint: UPath) -> str:
    """Read the id that a query keeps for as long as it keeps its checkpoint."""
    file = checkpoint / "metadata"
    query_id = parse_object(str(file), read_text(file)).get("id")
    if not isinstance(query_id, str) or not query_id:
        raise corrupt(str(file), "it has no query id")
    return query_id


def read_batch_offsets(checkpoint: UPath, batch_id: int) -> OffsetEntry | None:
    """Read what was planned for one batch; None where it is purged."""
    try:
        return read_offsets(checkpoint / "offsets" / str(batch_id))
    except FileNotFoundError:
        return None


def read_initial_offsets(checkpoint: UPath, source: str = "0") -> Any:
    """Read where a Kafka source began; its file has a zero byte before the version line."""
    file = checkpoint / "sources" / source / "0"
    _, lines = split_lines(str(file), read_text(file).removeprefix("\0"), newest_version=1)
    return parse_object(str(file), "\n".join(lines))


def find_commit_time(checkpoint: UPath, batch_id: int) -> datetime | None:
    """Find when a batch was committed; None where its commit is purged."""
    commit = checkpoint / "commits" / str(batch_id)
    try:
        written: datetime = commit.fs.modified(commit.path)
    except FileNotFoundError:
        return None
    return written if written.tzinfo else written.replace(tzinfo=UTC)


def _find_query_id(checkpoint: UPath, *, has_batches: bool) -> str | None:
    try:
        return read_query_id(checkpoint)
    except FileNotFoundError:
        if not has_batches:
            return None
        file = str(checkpoint / "metadata")
        raise corrupt(
            file, "it is missing, while batches are there; the query's id is lost"
        ) from None


def read_commit(file: UPath) -> CommitEntry:
    """Read a file of `commits/`, versions 1 to 3; a bare version line is valid."""
    _, lines = read_lines(file, newest_version=COMMIT_LOG_VERSION)
    body = parse_object(str(file), lines[0]) if lines else {}
    return CommitEntry(int(file.name), read_number(str(file), body, "nextBatchWatermarkMs"))


def read_offsets(file: UPath) -> OffsetEntry:
    """Read a file of `offsets/`, version 1 (a line a source) or 2 (`name:offset` lines)."""
    version, lines = read_lines(file, newest_version=OFFSET_LOG_VERSION)
    name = str(file)
    if not lines:
        raise corrupt(name, "it ends after its version line")
    metadata = parse_object(name, lines[0]) if lines[0].strip() else {}
    if not lines[1:]:
        raise corrupt(name, "it names no source")
    offsets = (
        (_split_source(name, line) for line in lines[1:])
        if version == _NAMED_SOURCES_VERSION
        else ((str(index), line) for index, line in enumerate(lines[1:]))
    )
    return OffsetEntry(
        batch_id=int(file.name),
        sources={
            source: None if offset.strip() == _NO_OFFSET else parse_json(name, offset)
            for source, offset in offsets
        },
        watermark_ms=read_number(name, metadata, "batchWatermarkMs"),
        timestamp_ms=read_number(name, metadata, "batchTimestampMs"),
        is_named=version == _NAMED_SOURCES_VERSION,
        conf=conf if isinstance(conf := metadata.get("conf"), dict) else {},
    )


def _split_source(file: str, line: str) -> tuple[str, str]:
    source, separator, offset = line.partition(":")
    if not separator or not source:
        raise corrupt(file, f"{line[:40]!r} is not 'source:offset'")
    return source, offset
