"""Running one planned pipeline as one bounded query."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.errors import PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tidegate.core.checkpoint.log import (
    read_batch_offsets,
    read_initial_offsets,
    read_query_id,
)
from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.errors import LedgerError, TidegateError
from tidegate.core.ledger import Attempt, Decision, Ledger, Outcome
from tidegate.core.recovery import recover_batches
from tidegate.core.settings import Settings
from tidegate.core.spec.kafka import KafkaSource, OnUnknown
from tidegate.core.spec.pipeline import Pipeline
from tidegate.spark.batch import BatchWriter
from tidegate.spark.kafka import KafkaReader
from tidegate.spark.recorder import BatchRecorder
from tidegate.spark.session import open_session
from tidegate.spark.sinks.delta import DeltaAppend
from tidegate.spark.sinks.writer import open_sink
from tidegate.spark.sources import first_line, open_stream
from tidegate.spark.statefulness import is_stateful
from tidegate.spark.transforms import TransformContext, apply_steps, open_static_tables
from tidegate.spark.values.decoding import MALFORMED
from tidegate.spark.values.text import add_unknown_columns

_EVENTS_TIMEOUT_SECONDS = 30
_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_]{3,})(\.[A-Z0-9_]+)*\] [^\n]+")
_CAUSE = re.compile(r"^Caused by: (?:[\w$]+\.)*(?P<told>[\w$]+: [^\n]+)", re.MULTILINE)
_WRAPPERS = frozenset({"STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR", "TASK_WRITE_FAILED"})


def run_pipeline(pipeline: Pipeline, settings: Settings, run_id: str) -> None:
    """Run a planned pipeline until its source is drained, and record how it ended."""
    ledger = Ledger.beside(settings.state_of(pipeline.name))
    plan = ledger.read_plan(run_id)
    if plan.decision is not Decision.RUN:
        print(f"tidegate: {pipeline.name} is {plan.decision}: {plan.reason}", flush=True)
        return
    progress = read_progress(settings.checkpoint_of(pipeline.name))
    recover_batches(pipeline, settings, plan, progress)
    started_at = _now()
    ledger.record_attempt(run_id, Attempt(Outcome.RUNNING, started_at))
    try:
        _Query(pipeline, settings, ledger, run_id, plan.accepts_loss).run()
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
    accepts_loss: bool

    def run(self) -> None:
        session = open_session(self.pipeline)
        rows, writer = self._build(session)
        recorder = BatchRecorder(self.ledger, self.pipeline.name, self.run_id)
        session.streams.addListener(recorder)
        try:
            self._drain(rows, writer, recorder)
        finally:
            session.streams.removeListener(recorder)

    def _build(self, session: SparkSession) -> tuple[DataFrame, BatchWriter]:
        context = TransformContext(
            pipeline=self.pipeline.name,
            run_id=self.run_id,
            spark=session,
            tables=open_static_tables(session, self.pipeline.tables, self.settings),
        )
        stream = open_stream(
            session, self.pipeline.source, self.settings, accepts_loss=self.accepts_loss
        )

        def transform(rows: DataFrame) -> DataFrame:
            return apply_steps(rows, self.pipeline, self.settings, context)

        is_split = MALFORMED in stream.columns
        good = stream.where(F.col(MALFORMED).isNull()).drop(MALFORMED) if is_split else stream
        result = transform(good)
        sinks = [
            open_sink(sink, self.settings, self.pipeline.name, evolves=self._evolves)
            for sink in self.pipeline.sinks
        ]
        for sink in sinks:
            sink.prepare(session, result.schema)
        if not is_split:
            return result, BatchWriter(self.run_id, sinks)
        quarantine = DeltaAppend(self.pipeline.quarantine_sink, self.settings)
        if is_stateful(result):
            # Steps that remember are part of the stream, so a batch has only what they let through.
            return result, BatchWriter(
                self.run_id,
                sinks,
                quarantine=quarantine,
                read_malformed=lambda batch_id: self._read_malformed(session, batch_id),
            )

        def finish(rows: DataFrame) -> DataFrame:
            if self._evolves:
                rows = add_unknown_columns(rows, sinks[0].read_schema(session))
            return transform(rows)

        return stream, BatchWriter(self.run_id, sinks, finish, quarantine)

    def _read_malformed(self, session: SparkSession, batch_id: int) -> DataFrame:
        source = self.pipeline.source
        if not isinstance(source, KafkaSource):
            raise TypeError(source)
        checkpoint = self.settings.checkpoint_of(self.pipeline.name)
        planned = read_batch_offsets(checkpoint, batch_id)
        before = read_batch_offsets(checkpoint, batch_id - 1)
        start = before.sources["0"] if before else read_initial_offsets(checkpoint)
        end = planned.sources["0"] if planned else start
        reader = KafkaReader(source, self.settings, self.accepts_loss)
        rows = reader.read_range(session, start, end)
        return rows.where(F.col(MALFORMED).isNotNull())

    @property
    def _evolves(self) -> bool:
        source = self.pipeline.source
        return isinstance(source, KafkaSource) and source.value.unknown_fields is OnUnknown.EVOLVE

    def _drain(self, rows: DataFrame, writer: BatchWriter, recorder: BatchRecorder) -> None:
        checkpoint = self.settings.checkpoint_of(self.pipeline.name)
        failures: list[Exception] = []

        def write_batch(batch: DataFrame, batch_id: int) -> None:
            try:
                result = writer.write(batch, batch_id, read_query_id(checkpoint))
                recorder.note_result(batch_id, result)
            except Exception as error:
                failures.append(error)  # Spark would hand it back as text, wrapped twice
                raise

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
    causes = _CAUSE.findall(str(error))  # of a client's error, such as Kafka's, the innermost
    if causes:
        return f"Spark failed: {causes[-1].strip()}"
    return f"{type(error).__name__}: {first_line(error)}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
