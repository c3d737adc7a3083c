"""How far a query got, decided from its logs by one pure function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from upath import UPath

from tidegate.core.checkpoint.log import CheckpointLogs, read_logs
from tidegate.core.checkpoint.position import SourceKind, classify_position, is_behind
from tidegate.core.errors import CorruptLogError, UnsupportedLogError


class State(StrEnum):
    """What a checkpoint says of its query."""

    NEVER_RAN = "never_ran"
    COMMITTED = "committed"
    PENDING = "pending"
    CORRUPT = "corrupt"
    UNSUPPORTED = "unsupported"


UNREADABLE = frozenset({State.CORRUPT, State.UNSUPPORTED})


@dataclass(frozen=True)
class SourceProgress:
    """One source's committed and planned positions, as Spark wrote them."""

    source: str
    kind: SourceKind
    committed: Any = None
    planned: Any = None


@dataclass(frozen=True)
class Progress:
    """How far a query got."""

    state: State
    query_id: str | None = None
    committed_batch: int | None = None
    planned_batch: int | None = None
    watermark_ms: int | None = None
    sources: tuple[SourceProgress, ...] = ()
    problem: str | None = None
    """Why nothing can be concluded."""
    obstacle: str | None = None
    """Why the query could not start again, although it is clear how far it got."""

    def find_committed(self, source: str) -> Any:
        """Find the committed position of a source; None where it has none."""
        return next((found.committed for found in self.sources if found.source == source), None)

    @property
    def is_readable(self) -> bool:
        """Whether anything can be concluded from it."""
        return self.state not in UNREADABLE


def read_progress(checkpoint: UPath) -> Progress:
    """Read a checkpoint's progress; a checkpoint that is broken is a state, not an error."""
    try:
        return compute_progress(read_logs(checkpoint))
    except UnsupportedLogError as error:
        return Progress(State.UNSUPPORTED, problem=str(error))
    except CorruptLogError as error:
        return Progress(State.CORRUPT, problem=str(error))
    except NotADirectoryError:
        problem = f"{checkpoint} is a file, and a checkpoint is a folder. Give the query's folder."
        return Progress(State.CORRUPT, problem=problem)


def compute_progress(logs: CheckpointLogs) -> Progress:
    """Decide progress from the ends of the two logs."""
    committed_batch = logs.committed.batch_id if logs.committed else None
    planned_batch = logs.planned.batch_id if logs.planned else None
    sources = tuple(_pair_positions(logs))
    problem = _find_contradiction(logs, committed_batch, planned_batch) or _find_step_back(
        logs, sources
    )
    if problem:
        state = State.CORRUPT
    elif planned_batch is None:
        state = State.NEVER_RAN
    else:
        state = State.COMMITTED if planned_batch == committed_batch else State.PENDING
    return Progress(
        state=state,
        query_id=logs.query_id,
        committed_batch=committed_batch,
        planned_batch=planned_batch,
        watermark_ms=_find_watermark(logs),
        sources=sources,
        problem=problem,
        obstacle=_find_obstacle(logs, planned_batch),
    )


def _find_contradiction(
    logs: CheckpointLogs, committed: int | None, planned: int | None
) -> str | None:
    if committed is not None and (planned is None or committed > planned):
        newest = "offsets/ is empty" if planned is None else f"the newest offsets are of {planned}"
        return (
            f"{logs.path}: batch {committed} is committed but {newest}. Do not restart the query: "
            "it would run a batch again. Restore offsets/ from a backup."
        )
    if committed is not None and logs.committed_offsets is None:
        return (
            f"{logs.path}/offsets/{committed} is missing while its batch is committed: the "
            "position reached is unknown. Restore it from a backup."
        )
    return None


def _find_step_back(logs: CheckpointLogs, sources: tuple[SourceProgress, ...]) -> str | None:
    if logs.committed_offsets is None or logs.planned is None:
        return None
    file = f"{logs.path}/offsets/{logs.planned.batch_id}"
    lost = [
        source for source in logs.committed_offsets.sources if source not in logs.planned.sources
    ]
    if lost:
        return (
            f"{file} is corrupt: source {', '.join(lost)} is missing in it. Do not restart the "
            "query; restore the checkpoint from a backup first."
        )
    behind = [s.source for s in sources if is_behind(s.planned, s.committed)]
    if behind:
        return (
            f"{file} is corrupt: source {', '.join(behind)} goes back behind what is committed. "
            "Do not restart the query; restore the checkpoint from a backup first."
        )
    return None


def _find_obstacle(logs: CheckpointLogs, planned: int | None) -> str | None:
    if planned is None or logs.has_start_of_planned:
        return None
    return (
        f"{logs.path}/offsets/{planned - 1} is missing, and Spark would fail with "
        f"'batch {planned - 1} doesn't exist'. Restore it from a backup."
    )


def _find_watermark(logs: CheckpointLogs) -> int | None:
    if logs.committed is None:
        return None
    if logs.committed.next_watermark_ms is not None:
        return logs.committed.next_watermark_ms
    return logs.committed_offsets.watermark_ms if logs.committed_offsets else None


def _pair_positions(logs: CheckpointLogs) -> Iterator[SourceProgress]:
    committed = logs.committed_offsets.sources if logs.committed_offsets else {}
    planned = logs.planned.sources if logs.planned else {}
    for source in dict.fromkeys([*committed, *planned]):
        positions = (committed.get(source), planned.get(source))
        known = next((position for position in positions if position is not None), None)
        yield SourceProgress(source, classify_position(known), *positions)
