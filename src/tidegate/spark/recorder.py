"""Writing each committed batch into the ledger and the log, as Spark reports it."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from tidegate.core.batchline import describe_batch
from tidegate.core.ledger import BatchRecord, Ledger, Metrics
from tidegate.spark.batch import BatchResult
from tidegate.spark.eventtime import read_event_times


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
            input_rows=_count_input(progress, result),
            seconds=round(progress["durationMs"].get("triggerExecution", 0) / 1000, 3),
            committed_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            sources=[
                {key: source.get(key) for key in ("description", "startOffset", "endOffset")}
                for source in progress["sources"]
            ],
            sinks=result.sinks,
            quarantined=result.quarantined,
            failed=result.failed,
            metrics=self._compare_state(_read_metrics(progress), batch_id),
        )
        self._ledger.record_batch(record)
        print(f"tidegate: {self._pipeline} {describe_batch(record)}", flush=True)

    def _compare_state(self, metrics: Metrics, batch_id: int) -> Metrics:
        """Add by how much the state grew since the batch before."""
        before = self._ledger.read_batch(batch_id - 1)
        known = Metrics() if batch_id == 0 else before.metrics if before else None
        if known is None:
            return metrics
        return replace(
            metrics,
            state_rows_growth=metrics.state_rows - known.state_rows,
            state_bytes_growth=metrics.state_bytes - known.state_bytes,
        )


def _count_input(progress: dict[str, Any], result: BatchResult) -> int | None:
    """Count the rows that were read; nobody knows where all sinks passed the batch over."""
    counted: int = progress["numInputRows"] if result.input_rows is None else result.input_rows
    is_passed = bool(result.sinks) and all(sink.is_replay for sink in result.sinks.values())
    return None if is_passed and not counted else counted


def _read_metrics(progress: dict[str, Any]) -> Metrics:
    operators = progress.get("stateOperators") or []
    return Metrics(
        input_rows_per_second=_read_rate(progress, "inputRowsPerSecond"),
        processed_rows_per_second=_read_rate(progress, "processedRowsPerSecond"),
        phases_ms=dict(progress["durationMs"]),
        watermark=(progress.get("eventTime") or {}).get("watermark"),
        state_rows=sum(operator["numRowsTotal"] for operator in operators),
        state_bytes=sum(operator["memoryUsedBytes"] for operator in operators),
        late_rows=sum(operator["numRowsDroppedByWatermark"] for operator in operators),
        event_times=read_event_times(progress.get("observedMetrics") or {}),
    )


def _read_rate(progress: dict[str, Any], name: str) -> float | None:
    rate = progress.get(name)
    return round(rate, 3) if isinstance(rate, int | float) and isfinite(rate) else None
