"""Running one planned pipeline as one bounded query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache

from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from upath import UPath

from tidegate.core.checkpoint.log import read_batch_offsets, read_query_id
from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.errors import LeaseLostError, LedgerError, TransformError
from tidegate.core.lease import Lease, LeaseFolder, hold_lease
from tidegate.core.ledger import Attempt, Decision, Ledger, Outcome, Plan, Stop
from tidegate.core.recovery import recover_batches
from tidegate.core.settings import Settings
from tidegate.core.shape import Shape
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.submission import name_attempt
from tidegate.spark.allowance import Allowance, BudgetSpentError
from tidegate.spark.batch import BatchWriter
from tidegate.spark.failure import asks_for_restart, describe_failure
from tidegate.spark.progress import ProgressLine, tell_now_and_then
from tidegate.spark.query import Query
from tidegate.spark.recorder import BatchRecorder
from tidegate.spark.session import open_session
from tidegate.spark.sources import first_line

_EVENTS_TIMEOUT_SECONDS = 30


def run_pipeline(
    pipeline: Pipeline, settings: Settings, run_id: str, try_number: str | None = None
) -> None:
    """Run a planned pipeline until its source is drained, and record how it ended."""
    ledger = Ledger.beside(settings.state_of(pipeline.name))
    plan = ledger.read_plan(run_id)
    if plan.decision is not Decision.RUN:
        print(f"tidegate: {pipeline.name} is {plan.decision}: {plan.reason}", flush=True)
        return
    checkpoint = settings.checkpoint_of(pipeline.name)
    with hold_lease(
        LeaseFolder.beside(checkpoint),
        name_attempt(run_id, try_number),
        seconds=settings.lease_seconds,
        tell=lambda told: print(f"tidegate: {pipeline.name} {told}", flush=True),
    ) as lease:
        start = read_progress(checkpoint)
        recover_batches(pipeline, settings, plan, start)
        started_at = _now()
        ledger.record_attempt(run_id, Attempt(Outcome.RUNNING, started_at))
        line = ProgressLine(plan.target, start, checkpoint)
        try:
            with tell_now_and_then(pipeline.name, line.describe):
                stop = _drain_source(pipeline, settings, plan, ledger, lease)
        except LeaseLostError:
            raise  # the new holder records what becomes of the run
        except BaseException as error:
            failed = Attempt(Outcome.FAILED, started_at, _now(), describe_failure(error))
            ledger.record_attempt(run_id, failed)
            raise
        if stop:
            told = f"{pipeline.name} stops: {stop.reason}. The next run goes on."
            print(f"tidegate: {told}", flush=True)
        ledger.record_attempt(run_id, Attempt(Outcome.SUCCEEDED, started_at, _now(), stop=stop))


def _drain_source(
    pipeline: Pipeline, settings: Settings, plan: Plan, ledger: Ledger, lease: Lease
) -> Stop | None:
    """Read a source to its end; begin again as often as its table's schema changes meanwhile."""
    told: str | None = None
    allowance = Allowance(pipeline.budget)
    # By the first batch that is written, Spark took the spec.
    note_shape = cache(lambda: ledger.record_shape(Shape.of(pipeline, settings.pipelines)))
    while True:
        session = open_session(pipeline)
        rows, writer = Query(pipeline, settings, plan.run_id, plan.accepts_loss).build(session)
        recorder = BatchRecorder(ledger, pipeline.name, plan.run_id)
        session.streams.addListener(recorder)
        try:
            _Drain(pipeline, settings, writer, recorder, lease, note_shape, allowance).run(rows)
        except BudgetSpentError as error:
            return error.stop
        except StreamingQueryException as error:
            # The same change twice is one that beginning again does not help against.
            if not asks_for_restart(error) or describe_failure(error) == told:
                raise
            told = describe_failure(error)
            print(f"tidegate: {pipeline.name} begins again. {told}", flush=True)
        else:
            return None
        finally:
            session.streams.removeListener(recorder)


@dataclass(frozen=True)
class _Drain:
    """Reads a source to its end, batch by batch."""

    pipeline: Pipeline
    settings: Settings
    writer: BatchWriter
    recorder: BatchRecorder
    lease: Lease
    note_shape: Callable[[], None]
    allowance: Allowance

    def run(self, rows: DataFrame) -> None:
        """Start the query and wait for its end; raise what went wrong, as it was raised."""
        failures: list[Exception] = []
        query = self._start(rows, failures)
        self.lease.on_loss = query.stop
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            self.recorder.await_end(_EVENTS_TIMEOUT_SECONDS)
            raise (failures[-1] if failures else error) from None
        self.lease.check()  # a query that was stopped for its loss ends like any other
        heard_all = self.recorder.await_end(_EVENTS_TIMEOUT_SECONDS)
        if self.recorder.error:
            raise self.recorder.error
        if not heard_all:
            raise LedgerError(
                "Spark did not report the end of the query, so the ledger may miss batches.",
                remedy="The rows are safe; look at the driver's log for the listener's error.",
            )

    def _start(self, rows: DataFrame, failures: list[Exception]) -> StreamingQuery:
        checkpoint = self.settings.checkpoint_of(self.pipeline.name)
        writer = replace(
            self.writer,
            check=self.lease.check,
            find_time=lambda batch_id: _find_time(checkpoint, batch_id),
        )

        def write_batch(batch: DataFrame, batch_id: int) -> None:
            try:
                self.allowance.take(batch_id)
                self.note_shape()
                result = writer.write(batch, batch_id, read_query_id(checkpoint))
                self.lease.check()
                self.recorder.note_result(batch_id, result)
            except Exception as error:
                failures.append(error)  # Spark would hand it back as text, wrapped twice
                raise

        stream = (
            rows.writeStream.queryName(self.pipeline.name)
            .outputMode(self.pipeline.output_mode)
            .foreachBatch(write_batch)
            .option("checkpointLocation", self.settings.checkpoint_url_of(self.pipeline.name))
            .trigger(availableNow=True)
        )
        try:
            return stream.start()
        except AnalysisException as error:
            raise TransformError(
                f"Spark refuses the query: {first_line(error)}",
                remedy="Correct the steps, source.watermark or output_mode in the spec.",
            ) from error


def _find_time(checkpoint: UPath, batch_id: int) -> int | None:
    planned = read_batch_offsets(checkpoint, batch_id)
    return planned.timestamp_ms if planned else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
