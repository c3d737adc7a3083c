"""What the newest batches of a pipeline did, a point for each."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from upath import UPath

from tidegate.core.checkpoint.filelog import read_file_log
from tidegate.core.errors import CorruptLogError, LedgerError
from tidegate.core.fleet.health import find_rate
from tidegate.core.fleet.lag import FileOffsets, Lag, count_left, tell_planned_lag
from tidegate.core.ledger import BatchRecord, Ledger, Metrics, Plan, SinkRecord, Summary
from tidegate.core.spec.pipeline import ONLY_SOURCE
from tidegate.core.storage import list_names
from tidegate.core.target import FilesTarget

_LARGEST_LOG_BYTES = 8_000_000
"""Of a longer log, some ten thousands of files, what a batch left is not told."""


@dataclass(frozen=True)
class BatchPoint:
    """One committed batch, as charts need it."""

    batch_id: int
    run_id: str
    committed_at: str
    seconds: float | None
    read_rows: int | None
    written_rows: int | None
    rows_per_second: float | None
    quarantined: int | None
    is_replay: bool
    """A sink already held the batch, so that it was not written there again."""
    phases_ms: dict[str, int]
    state_rows: int
    state_bytes: int
    late_rows: int
    watermark: str | None
    lag: int | None
    """How much of what the run set out to read was left after it."""
    planned_lag: Lag | None
    """What waited when its run was planned."""
    offsets: list[dict[str, Any]]
    """Where it began and ended, by source."""
    sinks: dict[str, SinkRecord]


@dataclass(frozen=True)
class History:
    """The newest batches, the newest first."""

    batches: tuple[BatchPoint, ...]
    next_before: int | None
    """Where to go on with older batches; None where there are none."""


def read_history(
    ledger: Ledger, newest: int | None, limit: int, checkpoint: UPath | None = None
) -> History:
    """Read batches from one downwards; by the checkpoint's own log, also what files each left."""
    records = list(ledger.read_newest_batches(newest, limit))
    plans = {run_id: _find_plan(ledger, run_id) for run_id in _list_runs(records)}
    files = _read_files(checkpoint, plans.values()) if checkpoint else {}
    oldest = (newest if newest is not None else -1) - limit + 1
    return History(
        batches=tuple(_to_point(record, plans[record.run_id], files) for record in records),
        next_before=oldest if oldest > 0 else None,
    )


def _list_runs(records: Iterable[BatchRecord]) -> list[str]:
    return list(dict.fromkeys(record.run_id for record in records))


def _find_plan(ledger: Ledger, run_id: str) -> Plan | None:
    try:
        return ledger.read_plan(run_id)
    except LedgerError:
        return None  # its folder was cleaned up


def _read_files(checkpoint: UPath, plans: Iterable[Plan | None]) -> FileOffsets:
    """Read the logs of file sources, but for those that would take long to read."""
    targets = [plan.target for plan in plans if plan]
    single = (one for target in targets for one in getattr(target, "targets", (target,)))
    sources = {one.source for one in single if isinstance(one, FilesTarget)}
    files = {}
    for source in sources:
        with suppress(CorruptLogError):
            if _measure_log(checkpoint / "sources" / source) <= _LARGEST_LOG_BYTES:
                logged = read_file_log(checkpoint, source)
                files[source] = {file.path: file.log_offset for file in logged}
    return files


def _measure_log(folder: UPath) -> int:
    compacted = (name for name in list_names(folder) if name.endswith(".compact"))
    return max((int((folder / name).stat().st_size) for name in compacted), default=0)


def _to_point(record: BatchRecord, plan: Plan | None, files: FileOffsets) -> BatchPoint:
    metrics = record.metrics or Metrics()
    return BatchPoint(
        batch_id=record.batch_id,
        run_id=record.run_id,
        committed_at=record.committed_at,
        seconds=record.seconds,
        read_rows=record.input_rows,
        written_rows=Summary.of([record]).output_rows,
        rows_per_second=find_rate(record),
        quarantined=record.quarantined,
        is_replay=any(sink.is_replay for sink in record.sinks.values()),
        phases_ms=metrics.phases_ms,
        state_rows=metrics.state_rows,
        state_bytes=metrics.state_bytes,
        late_rows=metrics.late_rows,
        watermark=metrics.watermark,
        lag=count_left(plan.target, _find_ends(record), files) if plan else None,
        planned_lag=tell_planned_lag(plan) if plan else None,
        offsets=record.sources,
        sinks=record.sinks,
    )


def _find_ends(record: BatchRecord) -> dict[str, Any]:
    """Find where a batch ended, by source; of several, Spark's report does not name them."""
    if len(record.sources) != 1:
        return {}
    return {ONLY_SOURCE: record.sources[0].get("endOffset")}
