"""Whether sinks would lose or double rows if a query were set back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import SurgeryError
from tidegate.core.filesink import find_newest_batch
from tidegate.core.ledger import Baseline, rank_batch
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.sinks.delta import DeltaMode, DeltaSink
from tidegate.core.spec.sinks.files import FilesSink
from tidegate.core.spec.sinks.jdbc import JdbcMode, JdbcSink
from tidegate.core.spec.sinks.sink import Sink

_KEYED = frozenset({DeltaMode.UPSERT, DeltaMode.SCD2})


@dataclass(frozen=True)
class SinkGuard:
    """Looks at a pipeline's sinks before its query reads again what followed a batch."""

    pipeline: Pipeline
    settings: Settings
    query_id: str
    batch: int
    renews: bool
    """Whether the query gets a new identity, by which sinks do not know it."""
    accepts_duplicates: bool
    are_checked: bool = False
    """Whether somebody has seen to the sinks that cannot be asked."""

    def check(self) -> None:
        """Refuse what would be silently wrong, and say how to do it right."""
        problems = [problem for sink in self.pipeline.sinks for problem in self._judge(sink)]
        if problems:
            raise SurgeryError(
                f"The query must not be set back to batch {self.batch} like this: "
                + " ".join(problems)
            )

    def _judge(self, sink: Sink) -> Iterator[str]:
        match sink:
            case DeltaSink() if sink.route_by is None:
                yield from self._judge_table(sink)
            case FilesSink():
                yield from self._judge_folder(sink)
            case JdbcSink():
                yield from self._judge_others(
                    sink, is_idempotent=sink.mode is JdbcMode.UPSERT, skips=True
                )
            case _:
                is_table = isinstance(sink, DeltaSink)
                yield from self._judge_others(sink, is_idempotent=False, skips=is_table)

    def _judge_table(self, sink: DeltaSink) -> Iterator[str]:
        log = DeltaLog(self.settings.locate(sink.table))
        app_id = sink.name_writer(self.query_id)
        newest = log.find_version()
        held = None if newest is None else log.find_transaction(newest, app_id)
        if held is None or held <= self.batch:
            return
        version = log.find_version_of(app_id, self.batch)
        restore = (
            f"RESTORE TABLE delta.`{log.table}` TO VERSION AS OF {version}"
            if version is not None
            else f"restore the table {log.table} to what it was after batch {self.batch}"
        )
        if not self.renews:
            yield (
                f"The table {log.table} holds batch {held} of this query, and Delta would pass over "
                f"batches {self.batch + 1} to {held} without a word. Set it back with --new-query-id"
                + ("." if sink.mode in _KEYED else f", after {restore}.")
            )
        elif sink.mode in _KEYED or sink.mode is DeltaMode.OVERWRITE or self.accepts_duplicates:
            return
        elif log.holds_rows_after(app_id, self.batch):
            yield (
                f"The table {log.table} still has the rows of batches {self.batch + 1} to {held}, "
                f"which would be written again. First {restore}; or say --accept-duplicates."
            )

    def _judge_folder(self, sink: FilesSink) -> Iterator[str]:
        folder = self.settings.locate(sink.path)
        held = find_newest_batch(folder)
        if held is not None and held > self.batch:
            yield (
                f"The folder {folder} holds batch {held}, and Spark's file sink would pass over "
                f"batches {self.batch + 1} to {held} without a word. Give the sink a new path first."
            )

    def _judge_others(self, sink: Sink, *, is_idempotent: bool, skips: bool) -> Iterator[str]:
        if self.are_checked:
            return
        if skips and not self.renews:
            yield (
                f"The sink {sink.name} knows the batches of this query that it has, and would pass "
                "over them without a word. Set it back with --new-query-id."
            )
        elif not is_idempotent and not self.accepts_duplicates:
            yield (
                f"The sink {sink.name} ({sink.type}) would be given rows again that it has. Take them "
                "out of it first; then say --accept-duplicates."
            )


@dataclass(frozen=True)
class ReturnGuard:
    """Looks at a pipeline's sinks before its query takes up an identity that it had before."""

    pipeline: Pipeline
    settings: Settings
    now: str
    """The identity that it has."""
    then: Baseline
    """The one that it had, and how far it had got."""
    are_checked: bool

    def check(self) -> None:
        """Refuse to go back where a sink has gone on, or was itself set back."""
        problems = [problem for sink in self.pipeline.sinks for problem in self._judge(sink)]
        if problems:
            raise SurgeryError(
                f"The query must not become {self.then.query_id} again: {' '.join(problems)}"
            )

    def _judge(self, sink: Sink) -> Iterator[str]:
        if not isinstance(sink, DeltaSink) or sink.route_by:
            if not self.are_checked:
                yield (
                    f"The sink {sink.name} ({sink.type}) does not tell whether it holds batches of "
                    f"{self.now}. See that it holds none; then say --sinks-are-checked."
                )
            return
        log = DeltaLog(self.settings.locate(sink.table))
        newest = log.find_version()
        if newest is None:
            return  # plan refuses a table that is gone
        later = log.find_transaction(newest, sink.name_writer(self.now))
        if later is not None:
            yield (
                f"The table {log.table} holds batches of {self.now} up to {later}, whose rows would be "
                "read again, or be left out. Go on with that one, or restore the table as well."
            )
        held = log.find_effective_batch(sink.name_writer(self.then.query_id or ""))
        if rank_batch(held) < rank_batch(self.then.committed_batch):
            yield (
                f"The table {log.table} was itself set back and has batches up to {held} only, not "
                f"{self.then.committed_batch}: what lies between would never be read again."
            )
