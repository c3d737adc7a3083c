"""New versions of a Delta table, and what keeps them from being read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from upath import UPath

from tidegate.core.checkpoint.progress import Progress
from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import BlockedError
from tidegate.core.settings import Settings
from tidegate.core.spec.source import DeltaSource
from tidegate.core.target import DeltaTarget, find_shortfall
from tidegate.core.waiting import Unit, Waiting
from tidegate.core.work.finding import Finding, mention_pending


def find_new_versions(
    name: str, source: DeltaSource, settings: Settings, progress: Progress, checkpoint: UPath
) -> Finding:
    """Find the versions that wait."""
    log = DeltaLog(settings.locate(source.table))
    newest = log.require_version()
    position = progress.find_committed(name)
    if position is None:
        not_yet = _find_start_ahead(source, log, newest)
        if not_yet:
            return Finding(not_yet)
    else:
        check_same_table(log, newest, position["reservoirId"])
        _check_log_is_kept(log, newest, position)
    target = DeltaTarget(newest, name, last_index=_find_last_index(source, log, newest))
    if position is not None and find_shortfall(target, progress, checkpoint) is None:
        return Finding(
            f"the table is read up to its newest version, {newest}",
            waiting={name: Waiting(Unit.VERSIONS, 0)},
        )
    return Finding(
        f"the table is at version {newest}{mention_pending(progress)}",
        target,
        waiting={name: _tell_waiting(log, newest, position)},
    )


def _tell_waiting(log: DeltaLog, newest: int, position: Mapping[str, Any] | None) -> Waiting:
    """Tell what waits of a table; before the first commit that is all of it, as one snapshot."""
    if position is None:
        return Waiting(Unit.VERSIONS, newest + 1)
    following = find_next_version(position)
    count = max(0, newest + 1 - following)
    headroom = find_log_headroom(log, position) if count else None
    if headroom is None:
        return Waiting(Unit.VERSIONS, count)
    age = log.read_retention(newest) - headroom
    return Waiting(
        Unit.VERSIONS,
        count,
        round(max(0.0, age.total_seconds()), 1),
        round(headroom.total_seconds(), 1),
    )


def _find_last_index(source: DeltaSource, log: DeltaLog, version: int) -> int | None:
    # A version with recorded changes is taken whole, and the position stays at its last file.
    changes = log.read_commit(version).change_files if source.change_data_feed else 0
    return changes - 1 if changes else None


def _find_start_ahead(source: DeltaSource, log: DeltaLog, newest: int) -> str | None:
    if source.starting_version is not None and source.starting_version > newest:
        return f"starting_version {source.starting_version} is not there yet; newest is {newest}"
    if source.starting_timestamp is not None:
        committed_ms = log.read_commit(newest).timestamp_ms
        if source.starting_timestamp.timestamp() * 1000 > committed_ms:
            return f"nothing was committed since starting_timestamp {source.starting_timestamp}"
    return None


def _check_log_is_kept(log: DeltaLog, newest: int, position: Mapping[str, Any]) -> None:
    """Refuse a table whose log was cleaned up past what is yet to be read."""
    next_version = find_next_version(position)
    earliest = log.find_earliest_version()
    if earliest is None or next_version > newest or earliest <= next_version:
        return
    raise BlockedError(
        f"Versions {next_version} to {earliest - 1} of the table {log.table} are gone from its log "
        "before they were read.",
        code="log_expired",
        cause="Delta cleans up log files older than delta.logRetentionDuration, 30 days by default.",
        remedy="Read the table anew: give the pipeline a new name and a new table. Then run it more "
        "often, or lengthen delta.logRetentionDuration.",
    )


def find_next_version(position: Mapping[str, Any]) -> int:
    """Find the first version that is not read as a whole."""
    return int(position["reservoirVersion"]) + bool(position.get("isStartingVersion"))


def find_log_headroom(log: DeltaLog, position: Mapping[str, Any]) -> timedelta | None:
    """Find how much longer the next version to be read is kept; None where there is none yet."""
    newest, version = log.require_version(), find_next_version(position)
    if version > newest:
        return None
    committed_at = datetime.fromtimestamp(log.read_commit(version).timestamp_ms / 1000, UTC)
    return committed_at + log.read_retention(newest) - datetime.now(UTC)


def check_same_table(log: DeltaLog, version: int, known_id: str) -> None:
    """Refuse a table that is not the one which the checkpoint was reading."""
    table_id = log.read_table_id(version)
    if table_id != known_id:
        raise BlockedError(
            f"The table {log.table} has id {table_id}, and the checkpoint was reading {known_id}.",
            code="table_recreated",
            cause="The table was deleted and created anew.",
            remedy="Give the pipeline a new name and a new table to read it from its start.",
        )
