"""What stands against going on, in a pipeline's history, sources and sinks; found without a JVM."""

from __future__ import annotations

from collections.abc import Mapping

from upath import UPath

from tidegate.core.checkpoint.position import SourceKind
from tidegate.core.checkpoint.progress import Progress, State
from tidegate.core.deltalog import DeltaLog
from tidegate.core.doctor.checkpoint import find_cut_off, glance_at_checkpoint
from tidegate.core.doctor.fault import list_errors
from tidegate.core.errors import BlockedError
from tidegate.core.filesink import find_newest_batch
from tidegate.core.ledger import Baseline, Ledger, rank_batch
from tidegate.core.settings import Settings
from tidegate.core.shape import digest_rules
from tidegate.core.spec.pipeline import ONLY_SOURCE, Pipeline
from tidegate.core.spec.sinks.delta import DeltaSink
from tidegate.core.spec.source import Source, SparkSource
from tidegate.core.storage import list_names


def check_history(known: Baseline, progress: Progress) -> None:
    """Refuse a checkpoint that is not the one of the last run: reading anew would double rows."""
    if not progress.is_readable:
        return  # told in its own words
    is_other = known.query_id is not None and progress.query_id != known.query_id
    if is_other or rank_batch(progress.committed_batch) < rank_batch(known.committed_batch):
        raise BlockedError(
            f"The checkpoint is at batch {progress.committed_batch} of query {progress.query_id}, "
            f"and the last run left it at batch {known.committed_batch} of query {known.query_id}.",
            code="checkpoint_replaced",
            cause="It was deleted, set back or replaced; read anew, rows would be written twice.",
            remedy="Restore it from a backup. To read all anew, delete the pipeline's whole state "
            "folder and its table.",
        )


def check_checkpoint(checkpoint: UPath) -> None:
    """Refuse a checkpoint that Spark could not go on from, or would go on from in a wrong way."""
    errors = list_errors(glance_at_checkpoint(checkpoint))
    if errors:
        raise BlockedError(
            " ".join(error.message for error in errors),
            code="checkpoint_damaged",
            remedy=" ".join(dict.fromkeys(error.remedy for error in errors)),
        )


def check_sources(pipeline: Pipeline, progress: Progress) -> None:
    """Refuse a checkpoint from which the query could not go on, or would lose rows."""
    if not progress.is_readable or progress.obstacle:
        raise BlockedError(progress.problem or progress.obstacle or "")
    found = {source.source: source.kind for source in progress.sources}
    wanted = {name: _tell_kind(source) for name, source in pipeline.inputs.items()}
    # What a position of any other format looks like is not known, so its kind tells nothing.
    expected = {n: k if k is not SourceKind.UNKNOWN else found.get(n) for n, k in wanted.items()}
    if found and found != expected:
        raise BlockedError(
            f"The checkpoint was reading {_tell_sources(found)}, and the spec says "
            f"{_tell_sources(wanted)}.",
            code="sources_changed",
            cause="The source of the pipeline was changed.",
            remedy="Give the changed pipeline a new name, and so a checkpoint of its own.",
        )


def _tell_kind(source: Source) -> SourceKind:
    return SourceKind.UNKNOWN if isinstance(source, SparkSource) else SourceKind(source.type)


def _tell_sources(kinds: Mapping[str, SourceKind]) -> str:
    return ", ".join(
        kind if name == ONLY_SOURCE else f"{name} ({kind})" for name, kind in sorted(kinds.items())
    )


def find_new_sinks(pipeline: Pipeline, progress: Progress, ledger: Ledger) -> list[str]:
    """Find sinks that the spec did not have when the newest batch was committed."""
    batch = progress.committed_batch
    recorded = ledger.read_batch(batch) if batch is not None else None
    if recorded is None or not recorded.sinks:
        return []
    return [sink.name for sink in pipeline.sinks if sink.name not in recorded.sinks]


def list_unwritten(pipeline: Pipeline, progress: Progress, ledger: Ledger) -> list[str]:
    """List the sinks that need not hold a batch yet: new ones, or all of a query with a new id."""
    if ledger.find_renewal() == Baseline(progress.query_id, progress.committed_batch):
        return [sink.name for sink in pipeline.sinks]
    return find_new_sinks(pipeline, progress, ledger)


def check_cut_off(checkpoint: UPath) -> None:
    """Refuse a checkpoint that somebody's change left half-way."""
    for fault in find_cut_off(checkpoint):
        raise BlockedError(fault.message, code=fault.code, remedy=fault.remedy)


def check_table(
    sink: DeltaSink, settings: Settings, progress: Progress, skips: UPath, *, is_new: bool
) -> None:
    """Refuse a table that is not the one which the query wrote to, or that is ahead or behind."""
    if sink.route_by:
        return  # its tables come and go with the rows
    log = DeltaLog(settings.locate(sink.table))
    newest = log.find_version()
    if newest is None:
        written = None
    elif progress.query_id is None:
        return
    else:
        written = log.find_transaction(newest, sink.name_writer(progress.query_id))
    if written is None and progress.committed_batch is not None and not is_new:
        raise BlockedError(
            f"The table {log.table} holds no batch of this query, and the checkpoint is at batch "
            f"{progress.committed_batch}.",
            code="sink_replaced",
            cause="The table was deleted or replaced, or the spec names another one.",
            remedy="Restore the table. To write all anew, delete the pipeline's whole state folder.",
        )
    if not is_new:
        _refuse_behind(log, written, progress, skips)
    planned = -1 if progress.planned_batch is None else progress.planned_batch
    if written is not None and written > planned:
        raise BlockedError(
            f"The table {log.table} holds batch {written} of this query, and the checkpoint knows "
            f"batches up to {planned} only: the next ones would be skipped as already written.",
            code="sink_ahead",
            cause="The checkpoint was set back or its logs were deleted.",
            remedy="Restore it from a backup. To read all anew, delete the pipeline's whole state "
            "folder and its table.",
        )


def check_restored(
    sink: DeltaSink, settings: Settings, progress: Progress, skips: UPath, *, looks: int
) -> None:
    """Refuse a table that was restored to an earlier version; its list of batches does not show it."""
    if sink.route_by or progress.query_id is None or progress.committed_batch is None:
        return
    log = DeltaLog(settings.locate(sink.table))
    held = log.find_effective_batch(sink.name_writer(progress.query_id), looks)
    if held is not None:
        _refuse_behind(log, held, progress, skips)


def _refuse_behind(log: DeltaLog, held: int | None, progress: Progress, skips: UPath) -> None:
    missing = range(rank_batch(held) + 1, rank_batch(progress.committed_batch) + 1)
    if not missing:
        return
    left_out = set(list_names(skips))
    if all(f"{batch}.json" in left_out for batch in missing):
        return
    raise BlockedError(
        f"The table {log.table} has the rows of batches up to {held} of this query, and the checkpoint "
        f"is at batch {progress.committed_batch}: what lies between would never be read again.",
        code="sink_behind",
        cause="The table was restored to an earlier version, or replaced by an older copy.",
        remedy="Bring the table back to where it was, or set the query back to the table: 'tidegate "
        f"checkpoint rewind NAME --to-batch {held} --new-query-id'.",
    )


def check_pending_rules(
    pipeline: Pipeline, settings: Settings, progress: Progress, ledger: Ledger
) -> None:
    """Refuse other rules for a batch that a table took by the old ones and that is not committed.

    What the old ones left out would be put aside by nobody, where the new ones let it through.
    """
    batch, query_id = progress.planned_batch, progress.query_id
    if progress.state is not State.PENDING or batch is None or query_id is None:
        return
    before = ledger.read_shape()
    if before is None or before.rules == digest_rules(pipeline):
        return
    for sink in pipeline.delta_sinks:
        log = DeltaLog(settings.locate(sink.table))
        newest = None if sink.route_by else log.find_version()
        held = None if newest is None else log.find_transaction(newest, sink.name_writer(query_id))
        if held == batch:
            raise BlockedError(
                f"Batch {batch} is pending, the table {log.table} took it already, and the rules have "
                "been changed since.",
                code="pending_rules_changed",
                cause="Rows that the old rules left out, and that were not put aside yet, would be "
                "lost where the new rules let them through.",
                remedy="Put expect and where back as they were, let one run commit the batch, and then "
                "deploy the new ones.",
            )


def check_folder(folder: UPath, progress: Progress) -> None:
    """Refuse a folder of files that is ahead of the query."""
    written, planned = find_newest_batch(folder), rank_batch(progress.planned_batch)
    if written is not None and written > planned:
        raise BlockedError(
            f"The log of files in {folder} holds batch {written}, and the checkpoint knows batches "
            f"up to {planned} only: the next ones would be skipped as already written.",
            code="sink_ahead",
            cause="The checkpoint is another one, was set back, or its logs were deleted.",
            remedy="Restore it from a backup, or give the sink a folder of its own.",
        )
