"""Writing each committed batch into the ledger and the log, as Spark reports it."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from tidegate.core.ledger import BatchRecord, Ledger, SinkRecord
from tidegate.spark.batch import BatchResult


class BatchRecorder(StreamingQueryListener):
    """Listens to one query; Spark reports a batch only after its commit is written."""

    def __init__(self, ledger: Ledger, pipeline: str, run_id: str) -> None:
        self._ledger = ledger
        self._pipeline = pipeline
        self._run_id = run_id
        self._results: dict[int, BatchResult] = {}
        self._terminated = threading.Event()
        self.error: Exception | None = None

    def note_result(self, batch_id: int, result: BatchResult) -> None:
        """Keep what a batch did until its commit is reported."""
        self._results[batch_id] = result

    def await_end(self, timeout_seconds: float) -> bool:
        """Wait until every event of the query was heard."""
        return self._terminated.wait(timeout_seconds)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Do nothing: the ledger has the start already."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Record a committed batch."""
        try:
            self._record(json.loads(event.progress.json))
        except Exception as error:
            # An exception here would vanish in the JVM's log; the runner raises it instead.
            self.error = error

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing: there was no batch."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: ARG002, N802
        """Let the runner go on: this is the query's last event."""
        self._terminated.set()

    def _record(self, progress: dict[str, Any]) -> None:
        batch_id = progress["batchId"]
        result = self._results.pop(batch_id, BatchResult({}))
        record = BatchRecord(
            batch_id=batch_id,
            run_id=self._run_id,
            input_rows=progress["numInputRows"],
            seconds=round(progress["durationMs"].get("triggerExecution", 0) / 1000, 3),
            committed_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            sources=[
                {key: source.get(key) for key in ("description", "startOffset", "endOffset")}
                for source in progress["sources"]
            ],
            sinks=result.sinks,
            quarantined=result.quarantined,
        )
        self._ledger.record_batch(record)
        print(f"tidegate: {self._pipeline} {_describe(record)}", flush=True)


def _describe_sink(name: str, sink: SinkRecord) -> str:
    if sink.is_replay:
        return f"{name} already had it"
    rows = "?" if sink.rows is None else f"{sink.rows:,}"
    return f"{rows} rows" + ("" if sink.version is None else f" in v{sink.version}")


def _describe(record: BatchRecord) -> str:
    written = ", ".join(_describe_sink(name, sink) for name, sink in record.sinks.items())
    aside = f", {record.quarantined:,} quarantined" if record.quarantined else ""
    return (
        f"batch {record.batch_id}: {record.input_rows:,} rows read, {written}{aside}, "
        f"{record.seconds} s"
    )
