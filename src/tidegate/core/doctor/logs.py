"""What is wrong with a checkpoint's identity and its two logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from upath import UPath

from tidegate.core.checkpoint.log import (
    OffsetEntry,
    list_batches,
    read_commit,
    read_offsets,
    read_query_id,
)
from tidegate.core.checkpoint.position import classify_position, is_behind
from tidegate.core.doctor.fault import Fault, Severity
from tidegate.core.errors import CheckpointError, CorruptLogError, UnsupportedLogError

_RESTORE = "Do not restart the query; restore the checkpoint from a backup first."
_UPGRADE = "Upgrade tidegate."
_INCOMPLETE = "Spark would fail with 'Incomplete log file'."
_EMPTY_ITERATOR = "Spark would fail with 'next on empty iterator'."
_JACKSON = (
    "Spark would fail with Jackson's 'Unexpected end-of-input' or the like, and name no file."
)


@dataclass(frozen=True)
class LogsExam:
    """Looks at `metadata`, `offsets/` and `commits/`.

    The newest entries decide whether the query can go on; older ones are looked at only if asked.
    """

    checkpoint: UPath
    is_thorough: bool = True

    def find_faults(self) -> Iterator[Fault]:
        """Find what is wrong."""
        yield from self._check_metadata()
        yield from self._check_order()
        yield from self._check_entries()
        yield from self._check_steps()
        yield from self._check_gaps()

    @cached_property
    def commits(self) -> list[int]:
        """The batches with a commit."""
        return sorted(list_batches(self.checkpoint / "commits"))

    @cached_property
    def offsets(self) -> list[int]:
        """The batches with offsets; listed after the commits, so that a race looks unfinished."""
        _ = self.commits
        return sorted(list_batches(self.checkpoint / "offsets"))

    @property
    def newest_commit(self) -> int:
        """The newest commit, -1 where there is none."""
        return self.commits[-1] if self.commits else -1

    @property
    def newest_offset(self) -> int:
        """The newest planned batch, -1 where there is none."""
        _ = self.commits
        return self.offsets[-1] if self.offsets else -1

    @property
    def next_batch(self) -> int:
        """The batch that the query would run next: a pending one, or the one after the newest."""
        planned, committed = self.newest_offset, self.newest_commit
        return planned if planned > committed else planned + 1

    def read_entry(self, batch: int) -> OffsetEntry | None:
        """Read what was planned for a batch; None where it is not there or not readable."""
        try:
            return read_offsets(self.checkpoint / "offsets" / str(batch))
        except (FileNotFoundError, CheckpointError):
            return None

    def _name(self, *parts: object) -> str:
        return str(self.checkpoint.joinpath(*map(str, parts)))

    def _check_metadata(self) -> Iterator[Fault]:
        file = self._name("metadata")
        try:
            read_query_id(self.checkpoint)
        except FileNotFoundError:
            if self.commits or self.offsets:
                yield Fault(
                    "metadata_missing",
                    Severity.ERROR,
                    file,
                    f"{file} is missing while batches are there: the query's id is lost. Spark would "
                    "fail with STREAMING_CHECKPOINT_MISSING_METADATA_FILE; before 4.2 it would take a "
                    "new id, and write rows again that are in the sink.",
                    "Restore the file from a backup; the id is also in the run ledger, and in the "
                    "table's log as the txn of its commits.",
                )
        except CorruptLogError as error:
            yield Fault(
                "metadata_corrupt",
                Severity.ERROR,
                file,
                f"{error.fact} Spark would fail with Jackson's 'No content to map due to "
                "end-of-input' or the like.",
                "Restore the file from a backup; the id is also in the run ledger, and in the "
                "table's log as the txn of its commits.",
            )

    def _check_order(self) -> Iterator[Fault]:
        planned, committed = self.newest_offset, self.newest_commit
        if planned < 0 and committed < 0:
            yield Fault(
                "never_ran",
                Severity.INFO,
                self._name("offsets"),
                "No batch was planned yet. If logs were deleted here, a sink that holds later batches "
                "of this query would pass over the next ones without a word.",
                "Ask the doctor by the pipeline's name to have the sink looked at as well.",
            )
        elif planned < 0:
            yield Fault(
                "offsets_missing",
                Severity.ERROR,
                self._name("offsets"),
                f"offsets/ is empty while batch {committed} is committed: the position reached is "
                "unknown. Spark would fail with 'assertion failed'.",
                "Restore offsets/ from a backup.",
            )
        elif committed > planned:
            yield Fault(
                "commit_ahead",
                Severity.ERROR,
                self._name("offsets", committed),
                f"Batch {committed} is committed, but the newest offsets are of batch {planned}. "
                f"Spark would run batch {planned} again, and then fail with "
                "CONCURRENT_STREAM_LOG_UPDATE, which is misleading.",
                "Do not restart the query: it would run a batch again. Restore offsets/ from a "
                "backup.",
            )
        elif planned > committed:
            yield from self._check_pending()
        if planned > 0 and planned - 1 not in self.offsets and planned >= committed:
            yield Fault(
                "start_missing",
                Severity.ERROR,
                self._name("offsets", planned - 1),
                f"offsets/{planned - 1} is missing, where batch {planned} begins. Spark would fail "
                f"with 'batch {planned - 1} doesn't exist'.",
                "Restore it from a backup.",
            )

    def _check_pending(self) -> Iterator[Fault]:
        planned, committed = self.newest_offset, self.newest_commit
        if planned > committed + 1:
            lost = "all commits are" if committed < 0 else f"commits after {committed} are"
            yield Fault(
                "commits_missing",
                Severity.WARNING,
                self._name("commits"),
                f"The newest offsets are of batch {planned}, and {lost} gone. Spark would run batch "
                f"{planned} again, and no other.",
                "A sink that takes each batch once needs nothing; for any other, restore commits/ "
                "from a backup.",
            )
        else:
            yield Fault(
                "pending",
                Severity.INFO,
                self._name("offsets", planned),
                f"Batch {planned} is planned and not committed. Spark runs it first, with the same "
                "offsets.",
                "Nothing needs to be done.",
            )
        if committed >= 0 and committed not in self.offsets and committed != planned - 1:
            yield Fault(
                "committed_offsets_missing",
                Severity.ERROR,
                self._name("offsets", committed),
                f"offsets/{committed} is missing while its batch is committed: the position reached "
                "is unknown.",
                "Restore it from a backup.",
            )

    def _check_entries(self) -> Iterator[Fault]:
        needed = {self.newest_offset, self.newest_offset - 1, self.newest_commit}
        for kind, batches in (("commits", self.commits), ("offsets", self.offsets)):
            wanted = {self.newest_commit} if kind == "commits" else needed
            for batch in batches:
                if batch in wanted or self.is_thorough:
                    yield from self._check_entry(kind, batch, is_needed=batch in wanted)

    def _check_entry(self, kind: str, batch: int, *, is_needed: bool) -> Iterator[Fault]:
        file = self.checkpoint / kind / str(batch)
        try:
            _ = read_commit(file) if kind == "commits" else read_offsets(file)
        except FileNotFoundError:
            return  # purged meanwhile
        except UnsupportedLogError as error:
            message = f"{error.fact} {error.cause}"
            yield Fault("unsupported_version", _rank(is_needed), str(file), message, _UPGRADE)
        except CorruptLogError as error:
            entry = "commit" if kind == "commits" else "offset"
            if is_needed:
                message = f"{error.fact} {_tell_spark(error.fact)}"
                yield Fault(f"{entry}_corrupt", Severity.ERROR, str(file), message, _RESTORE)
            else:
                message = f"{error.fact} It is of an old batch, and Spark does not read it again."
                remedy = "Nothing needs to be done, but the query cannot be set back to it."
                yield Fault(f"old_{entry}_corrupt", Severity.WARNING, str(file), message, remedy)

    def _check_steps(self) -> Iterator[Fault]:
        """Find offsets that go backward, or sources that come and go, from a batch to the next."""
        batches = self.offsets if self.is_thorough else self.offsets[-2:]
        before: OffsetEntry | None = None
        for batch in batches:
            entry = self.read_entry(batch)
            if entry and before:
                is_newest = batch == self.newest_offset
                yield from self._compare(before, entry, _rank(is_newest))
            before = entry or before

    def _compare(self, before: OffsetEntry, entry: OffsetEntry, rank: Severity) -> Iterator[Fault]:
        file = self._name("offsets", entry.batch_id)
        lost = [source for source in before.sources if source not in entry.sources]
        added = [source for source in entry.sources if source not in before.sources]
        if lost or (added and not entry.is_named):
            count, had = len(entry.sources), len(before.sources)
            yield Fault(
                "source_count_changed",
                rank,
                file,
                f"{file} has {count} sources, and offsets/{before.batch_id} had {had}. Spark would "
                f"fail with 'There are [{count}] sources in the checkpoint offsets and now there are "
                f"[{had}] sources requested by the query'.",
                _RESTORE,
            )
        other = [
            source
            for source, position in entry.sources.items()
            if _is_of_other_kind(position, before.sources.get(source))
        ]
        if other:
            yield Fault(
                "position_lost",
                rank,
                file,
                f"{file} has no position in source {', '.join(other)}, or one of another kind than "
                f"offsets/{before.batch_id}: the file was changed. Spark would fail, or read the source "
                "from its start again.",
                _RESTORE,
            )
        behind = [
            source
            for source, position in entry.sources.items()
            if is_behind(position, before.sources.get(source))
        ]
        if behind:
            yield Fault(
                "offset_backward",
                rank,
                file,
                f"{file} goes back behind offsets/{before.batch_id} in source {', '.join(behind)}. "
                "Spark does not notice: the file was changed, or a Kafka topic was deleted and "
                "created anew, whose records would be left out until it is as long as the old one.",
                _RESTORE,
            )

    def _check_gaps(self) -> Iterator[Fault]:
        first = min([*self.offsets[:1], *self.commits[:1]], default=0)
        for kind, batches in (("offsets", self.offsets), ("commits", self.commits)):
            needed = self.newest_offset - 1 if kind == "offsets" else self.newest_commit
            missing = sorted(set(range(first, needed)) - set(batches)) if batches else []
            if missing:
                yield Fault(
                    f"{kind}_gap",
                    Severity.INFO,
                    self._name(kind, missing[0]),
                    f"{kind}/ lacks {_tell_batches(missing)} among older ones. Spark does not read "
                    "them again.",
                    "Nothing needs to be done, but the query cannot be set back to them.",
                )


def _is_of_other_kind(position: Any, before: Any) -> bool:
    if before is None:
        return False
    return position is None or classify_position(position) is not classify_position(before)


def _rank(is_needed: bool) -> Severity:
    return Severity.ERROR if is_needed else Severity.WARNING


def _tell_spark(fact: str) -> str:
    if "it is empty" in fact:
        return _INCOMPLETE
    return _EMPTY_ITERATOR if "ends after its version line" in fact else _JACKSON


def _tell_batches(batches: list[int]) -> str:
    named = ", ".join(map(str, batches[:5]))
    return f"{named} and {len(batches) - 5} more" if len(batches) > 5 else named  # noqa: PLR2004
