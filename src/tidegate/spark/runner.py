"""Running one planned pipeline as one bounded query."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.errors import PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tidegate.core.checkpoint.log import read_query_id
from tidegate.core.errors import LedgerError, TidegateError
from tidegate.core.ledger import Attempt, Decision, Ledger, Outcome, SinkRecord
from tidegate.core.recovery import recover_batches
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.spark.recorder import BatchRecorder
from tidegate.spark.session import open_session
from tidegate.spark.sinks.delta import DeltaAppend
from tidegate.spark.sources import first_line, open_stream
from tidegate.spark.transforms import TransformContext, apply_steps, open_static_tables

_EVENTS_TIMEOUT_SECONDS = 30
_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_]{3,})(\.[A-Z0-9_]+)*\] [^\n]+")
_WRAPPERS = frozenset({"STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR", "TASK_WRITE_FAILED"})


def run_pipeline(pipeline: Pipeline, settings: Settings, run_id: str) -> None:
    """Run a planned pipeline until its source is drained, and record how it ended."""
    ledger = Ledger.beside(settings.state_of(pipeline.name))
    plan = ledger.read_run(run_id).plan
    if plan.decision is not Decision.RUN:
        print(f"tidegate: {pipeline.name} is {plan.decision}: {plan.reason}", flush=True)
        return
    recover_batches(pipeline, settings, plan)
    started_at = _now()
    ledger.record_attempt(run_id, Attempt(Outcome.RUNNING, started_at))
    try:
        _Query(pipeline, settings, ledger, run_id).run()
    except BaseException as error:
        failed = Attempt(Outcome.FAILED, started_at, _now(), describe_failure(error))
        ledger.record_attempt(run_id, failed)
        raise
    ledger.record_attempt(run_id, Attempt(Outcome.SUCCEEDED, started_at, _now()))


@dataclass(frozen=True)
class _Query:
    """The streaming query of one run."""

    pipeline: Pipeline
    settings: Settings
    ledger: Ledger
    run_id: str

    def run(self) -> None:
        session = open_session(self.pipeline)
        rows = self._build(session)
        sinks = [DeltaAppend(sink, self.settings) for sink in self.pipeline.sinks]
        for sink in sinks:
            sink.prepare(session, rows.schema)
        recorder = BatchRecorder(self.ledger, self.pipeline.name, self.run_id)
        session.streams.addListener(recorder)
        try:
            self._drain(rows, sinks, recorder)
        finally:
            session.streams.removeListener(recorder)

    def _build(self, session: SparkSession) -> DataFrame:
        context = TransformContext(
            pipeline=self.pipeline.name,
            run_id=self.run_id,
            spark=session,
            tables=open_static_tables(session, self.pipeline.tables, self.settings),
        )
        stream = open_stream(session, self.pipeline.source, self.settings)
        return apply_steps(stream, self.pipeline, self.settings, context)

    def _drain(self, rows: DataFrame, sinks: list[DeltaAppend], recorder: BatchRecorder) -> None:
        checkpoint = self.settings.checkpoint_of(self.pipeline.name)
        failures: list[Exception] = []

        def write_batch(batch: DataFrame, batch_id: int) -> None:
            try:
                recorder.note_sinks(batch_id, write_sinks(batch, batch_id))
            except Exception as error:
                failures.append(error)  # Spark would hand it back as text, wrapped twice
                raise

        def write_sinks(batch: DataFrame, batch_id: int) -> dict[str, SinkRecord]:
            query_id = read_query_id(checkpoint)
            return {sink.sink.name: sink.write(batch, batch_id, query_id) for sink in sinks}

        query = (
            rows.writeStream.queryName(self.pipeline.name)
            .foreachBatch(write_batch)
            .option("checkpointLocation", self.settings.checkpoint_url_of(self.pipeline.name))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            recorder.await_end(_EVENTS_TIMEOUT_SECONDS)
            raise (failures[-1] if failures else error) from None
        heard_all = recorder.await_end(_EVENTS_TIMEOUT_SECONDS)
        if recorder.error:
            raise recorder.error
        if not heard_all:
            raise LedgerError(
                "Spark did not report the end of the query, so the ledger may miss batches.",
                remedy="The rows are safe; look at the driver's log for the listener's error.",
            )


def describe_failure(error: BaseException) -> str:
    """Say in one line why a run failed."""
    if isinstance(error, TidegateError):
        return str(error)
    if isinstance(error, PythonException):
        raised = [line for line in str(error).splitlines() if line.strip()]
        return f"Python code in a step failed: {raised[-1].strip()}"
    # Spark wraps the condition that a person needs into several that say only that a job failed.
    conditions = [m for m in _CONDITION.finditer(str(error)) if m["name"] not in _WRAPPERS]
    if conditions:
        return f"Spark failed: {conditions[0][0].strip()}"
    return f"{type(error).__name__}: {first_line(error)}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
