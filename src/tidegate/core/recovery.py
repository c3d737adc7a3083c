"""Writing down the batches that a driver committed and was killed before it could record."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from upath import UPath

from tidegate.core.checkpoint.log import find_commit_time, read_batch_offsets
from tidegate.core.checkpoint.progress import Progress
from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import CheckpointError
from tidegate.core.ledger import BatchRecord, Ledger, Plan, SinkRecord, rank_batch
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline


def recover_batches(pipeline: Pipeline, settings: Settings, plan: Plan, progress: Progress) -> None:
    """Record what a run committed and nobody wrote down, from the checkpoint and the sink's log."""
    checkpoint = settings.checkpoint_of(pipeline.name)
    known = plan.baseline.query_id
    if progress.query_id is None or known not in (None, progress.query_id):
        return  # another query's batches are not this run's
    ledger = Ledger.beside(settings.state_of(pipeline.name))
    first = rank_batch(plan.baseline.committed_batch) + 1
    missing = [
        batch_id
        for batch_id in range(first, rank_batch(progress.committed_batch) + 1)
        if ledger.read_batch(batch_id) is None
    ]
    sinks = _find_sink_records(pipeline, settings, progress.query_id, missing)
    for batch_id in missing:
        ledger.record_batch(
            BatchRecord(
                batch_id=batch_id,
                run_id=plan.run_id,
                input_rows=None,
                seconds=None,
                committed_at=_tell_commit_time(checkpoint, batch_id),
                sources=_read_sources(checkpoint, batch_id),
                sinks=sinks.get(batch_id, {}),
                quarantined=None if pipeline.quarantines else 0,
                failed=None if pipeline.rules else {},
            )
        )


def _find_sink_records(
    pipeline: Pipeline, settings: Settings, query_id: str, batch_ids: list[int]
) -> dict[int, dict[str, SinkRecord]]:
    if not batch_ids:
        return {}
    unknown = SinkRecord(rows=None, version=None)
    records = {batch_id: {sink.name: unknown for sink in pipeline.sinks} for batch_id in batch_ids}
    for sink in pipeline.delta_sinks:
        log = DeltaLog(settings.locate(sink.table))
        commits = log.find_batches(sink.name_writer(query_id), batch_ids)
        for batch_id, commit in commits.items():
            records[batch_id][sink.name] = SinkRecord(rows=commit.rows, version=commit.version)
    return records


def _read_sources(checkpoint: UPath, batch_id: int) -> list[dict[str, Any]]:
    try:
        ends = read_batch_offsets(checkpoint, batch_id)
        starts = read_batch_offsets(checkpoint, batch_id - 1)
    except CheckpointError:
        return []  # an old entry that is broken; whether it matters is for others to say
    if ends is None:
        return []
    return [
        {
            "description": source,
            "startOffset": starts.sources.get(source) if starts else None,
            "endOffset": end,
        }
        for source, end in ends.sources.items()
    ]


def _tell_commit_time(checkpoint: UPath, batch_id: int) -> str:
    committed_at = find_commit_time(checkpoint, batch_id) or datetime.now(UTC)
    return committed_at.astimezone(UTC).isoformat(timespec="milliseconds")
