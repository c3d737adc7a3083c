"""New files in a landing zone, and what keeps them from being read."""

from __future__ import annotations

import time

from upath import UPath

from tidegate.core.checkpoint.filelog import read_file_log
from tidegate.core.checkpoint.progress import Progress
from tidegate.core.ends.files import (
    Backlog,
    LandedFile,
    find_backlog,
    list_landing,
    refuse_patterns,
)
from tidegate.core.errors import BlockedError
from tidegate.core.settings import Settings
from tidegate.core.spec.files import FilesSource
from tidegate.core.target import FilesTarget
from tidegate.core.waiting import Unit, Waiting
from tidegate.core.work.finding import Finding, mention_pending


def find_new_files(
    name: str, source: FilesSource, settings: Settings, progress: Progress, checkpoint: UPath
) -> Finding:
    """Find the files that wait."""
    folder = settings.locate(source.path)
    committed = progress.find_committed(name)
    landed = list_landing(folder, source, was_read=committed is not None)
    committed_offset = -1 if committed is None else committed["logOffset"]
    backlog = find_backlog(
        landed,
        read_file_log(checkpoint, name, up_to=committed_offset),
        committed_offset=committed_offset,
        max_age_ms=int(source.max_file_age.total_seconds() * 1000),
    )
    refuse_patterns(backlog.paths, folder.path)
    _refuse_lost_files(backlog)
    warning = _describe_ignored(backlog)
    waiting = {name: _tell_waiting(backlog, landed)}
    if not backlog.paths:
        return Finding(f"no new files among {len(landed):,}", warning=warning, waiting=waiting)
    return Finding(
        f"{len(backlog.paths):,} files to read{mention_pending(progress)}",
        FilesTarget(backlog.paths, name, since=committed_offset),
        warning,
        waiting=waiting,
    )


def _tell_waiting(backlog: Backlog, landed: list[LandedFile]) -> Waiting:
    waiting = frozenset(backlog.paths)
    landed_ms = min((file.modified_ms for file in landed if file.path in waiting), default=None)
    age = None if landed_ms is None else round(max(0.0, time.time() - landed_ms / 1000), 1)
    return Waiting(Unit.FILES, len(waiting), age)


def _refuse_lost_files(backlog: Backlog) -> None:
    if backlog.lost:
        raise BlockedError(
            f"{len(backlog.lost):,} files of a batch that is not committed are gone, such as "
            f"{backlog.lost[0]}.",
            code="files_lost",
            cause="Spark would commit the batch without them, and never read them again.",
            remedy="Put them back, then run again.",
        )


def _describe_ignored(backlog: Backlog) -> str | None:
    told = {
        "older than max_file_age and will never be read": backlog.too_old,
        "overwritten after they were read and will not be read again": backlog.overwritten,
    }
    return "; ".join(f"{count:,} files are {what}" for what, count in told.items() if count) or None
