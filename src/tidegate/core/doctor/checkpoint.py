"""What is wrong with a checkpoint, from its files alone."""

from __future__ import annotations

from collections.abc import Iterator

from upath import UPath

from tidegate.core.checkpoint.filelog import read_file_log
from tidegate.core.checkpoint.position import SourceKind, classify_position
from tidegate.core.doctor.fault import Fault, Severity
from tidegate.core.doctor.litter import find_litter
from tidegate.core.doctor.logs import LogsExam
from tidegate.core.doctor.state import StateExam
from tidegate.core.errors import CheckpointError, CorruptLogError
from tidegate.core.storage import is_local
from tidegate.core.surgery.backup import Backups


def examine_checkpoint(checkpoint: UPath) -> list[Fault]:
    """Find all that is wrong with a checkpoint, or worth knowing, looking at every file."""
    logs = LogsExam(checkpoint)
    try:
        _ = logs.offsets
    except CorruptLogError as error:
        place = str(checkpoint)
        return [Fault("log_corrupt", Severity.ERROR, place, str(error.fact), error.remedy)]
    return [
        *find_cut_off(checkpoint),
        *logs.find_faults(),
        *_check_litter(checkpoint, logs),
        *_check_file_logs(checkpoint, logs),
        *StateExam(checkpoint, logs.next_batch).find_faults(),
    ]


def find_cut_off(checkpoint: UPath) -> Iterator[Fault]:
    """Find a change by hand that did not come to its end."""
    cut_off = Backups(checkpoint).find_cut_off()
    if cut_off:
        yield Fault(
            "change_cut_off",
            Severity.ERROR,
            str(cut_off.folder),
            f"The {cut_off.manifest.why} of {cut_off.manifest.made_at} did not come to its end, so that "
            "the checkpoint is neither what it was nor what it was to be.",
            "Do not start the query. Undo the change by 'tidegate checkpoint undo', and do it again.",
        )


def glance_at_checkpoint(checkpoint: UPath) -> list[Fault]:
    """Find what keeps a query from going on, at a cost that does not grow with its history."""
    logs = LogsExam(checkpoint, is_thorough=False)
    return [
        *logs.find_faults(),
        *_check_litter(checkpoint, logs),
        *StateExam(checkpoint, logs.next_batch, is_local(checkpoint)).find_faults(),
    ]


def _check_litter(checkpoint: UPath, logs: LogsExam) -> Iterator[Fault]:
    uncommitted = min(logs.next_batch, logs.newest_commit + 1)
    folders = {
        ".": (checkpoint, 0),
        "offsets": (checkpoint / "offsets", logs.newest_offset + 1),
        "commits": (checkpoint / "commits", uncommitted),
    }
    for folder, next_entry in folders.values():
        yield from find_litter(folder, next_entry=next_entry, checks_sums=logs.is_thorough)
    for source, log_offset in _list_file_sources(logs):
        folder = checkpoint / "sources" / source
        yield from find_litter(folder, next_entry=log_offset + 1, checks_sums=logs.is_thorough)


def _check_file_logs(checkpoint: UPath, logs: LogsExam) -> Iterator[Fault]:
    for source, log_offset in _list_file_sources(logs):
        folder = str(checkpoint / "sources" / source)
        try:
            read_file_log(checkpoint, source, up_to=log_offset)
        except CheckpointError as error:
            yield Fault(
                "file_log_corrupt",
                Severity.ERROR,
                folder,
                f"{error.fact} Spark would fail with 'batch {log_offset} doesn't exist' or the like.",
                error.remedy,
            )


def _list_file_sources(logs: LogsExam) -> Iterator[tuple[str, int]]:
    entry = logs.read_entry(logs.newest_offset)
    for source, position in (entry.sources if entry else {}).items():
        if classify_position(position) is SourceKind.FILES:
            yield source, position["logOffset"]
