"""A pipeline as one streaming query: what is read, and what is done with each batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from tidegate.core.checkpoint.log import read_batch_offsets, read_initial_offsets
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import OutputMode, Pipeline
from tidegate.core.spec.sinks.sink import Sink
from tidegate.spark.batch import BatchWriter, Outlet, add_batch
from tidegate.spark.files import tell_corrupt
from tidegate.spark.gate import Gate
from tidegate.spark.kafka import KafkaReader
from tidegate.spark.quarantine import Quarantine
from tidegate.spark.session import name_sources, tune_for_state
from tidegate.spark.sinks.writer import open_sink
from tidegate.spark.sources import open_stream
from tidegate.spark.statefulness import is_stateful, joins_for_ever
from tidegate.spark.transforms import TransformContext, apply_steps, open_static_tables
from tidegate.spark.values.decoding import MALFORMED
from tidegate.spark.values.text import add_unknown_columns


@dataclass(frozen=True)
class OpenQuery:
    """The parts of a query, each checked against the next."""

    streams: Mapping[str, DataFrame]
    """Its sources, as they are read."""
    result: DataFrame
    """What the steps give."""
    writer: BatchWriter
    remembers: bool
    finish: Callable[[DataFrame], DataFrame]
    """Takes rows of the only source through the steps."""

    @property
    def shape(self) -> StructType:
        """The columns that sinks are given."""
        return _shape(self.result, self.writer.adds_batch).schema


@dataclass(frozen=True)
class Query:
    """The streaming query of one run."""

    pipeline: Pipeline
    settings: Settings
    run_id: str
    accepts_loss: bool

    def build(self, session: SparkSession) -> tuple[DataFrame, BatchWriter]:
        """Build the stream, and what writes its batches."""
        query = self.open(session)
        if query.remembers or self.pipeline.sources:
            # The steps are part of the stream, so a batch has only what they let through.
            split = [name for name, stream in query.streams.items() if MALFORMED in stream.columns]
            return query.result, replace(
                query.writer,
                read_malformed=(
                    (lambda batch_id: self._read_malformed(session, split, batch_id))
                    if split
                    else None
                ),
            )
        (stream,) = query.streams.values()
        if self.pipeline.puts_records_aside:
            stream = tell_corrupt(stream)
        is_split = MALFORMED in stream.columns
        if not (is_split or self.pipeline.adds_unknown_fields or query.writer.puts_aside):
            return query.result, query.writer
        return stream, replace(query.writer, prepare=query.finish)

    def open(self, session: SparkSession) -> OpenQuery:
        """Open sources, steps and sinks, and check that they fit."""
        if self.pipeline.sources:
            name_sources(session, self.settings.checkpoint_of(self.pipeline.name))
        checkpoint = self.settings.checkpoint_url_of(self.pipeline.name)
        streams = {
            name: open_stream(
                *(session, name, source, self.settings, checkpoint), accepts_loss=self.accepts_loss
            )
            for name, source in self.pipeline.inputs.items()
        }
        good = {name: _leave_malformed(stream) for name, stream in streams.items()}
        first = next(iter(good))
        context = self._open_context(session, good)
        result = self._transform(good[first], context)
        remembers = is_stateful(result)
        if remembers:
            tune_for_state(session, self.pipeline)
            self._warn_of_joins(result)
        writer = self._open_writer(session, result, remembers=remembers)

        def finish(rows: DataFrame) -> DataFrame:
            if self.pipeline.adds_unknown_fields:
                rows = add_unknown_columns(rows, writer.outlets[0].writer.read_schema(session))
            return self._transform(rows, context)

        return OpenQuery(streams, result, writer, remembers, finish)

    def _warn_of_joins(self, result: DataFrame) -> None:
        if joins_for_ever(result):
            print(
                f"tidegate: {self.pipeline.name} joins streams of which one has no watermark, so "
                "rows are remembered for ever. Give each source a watermark, and "
                "the join a condition on how far apart their times may be.",
                flush=True,
            )

    def _open_context(
        self, session: SparkSession, streams: dict[str, DataFrame]
    ) -> TransformContext:
        if self.pipeline.sources:
            for name, stream in streams.items():
                stream.createOrReplaceTempView(name)
        return TransformContext(
            pipeline=self.pipeline.name,
            run_id=self.run_id,
            spark=session,
            tables=open_static_tables(session, self.pipeline.tables, self.settings),
            sources=streams if self.pipeline.sources else {},
        )

    def _transform(self, rows: DataFrame, context: TransformContext) -> DataFrame:
        return apply_steps(rows, self.pipeline, self.settings, context)

    def _open_writer(
        self, session: SparkSession, result: DataFrame, *, remembers: bool
    ) -> BatchWriter:
        adds_batch = self.pipeline.output_mode is OutputMode.UPDATE
        shape = _shape(result, adds_batch)
        gate = Gate(self.pipeline.expect)
        gate.check(shape)
        return BatchWriter(
            outlets=tuple(self._open_outlet(s, session, shape) for s in self.pipeline.sinks),
            gate=gate,
            quarantine=Quarantine.of(self.pipeline, self.settings, self.run_id),
            adds_batch=adds_batch,
            remembers=remembers,
        )

    def _open_outlet(self, sink: Sink, session: SparkSession, rows: DataFrame) -> Outlet:
        gate = Gate(sink.rules, sink.name)
        gate.check(rows, sink.where)
        writer = open_sink(sink, self.settings, self.pipeline.name, self.pipeline.table_policy)
        writer.prepare(session, rows.schema)
        return Outlet(writer, gate, sink.where)

    def _read_malformed(self, session: SparkSession, names: list[str], batch_id: int) -> DataFrame:
        parts = (self._read_malformed_of(session, name, batch_id) for name in names)
        return reduce(DataFrame.union, parts)

    def _read_malformed_of(self, session: SparkSession, name: str, batch_id: int) -> DataFrame:
        checkpoint = self.settings.checkpoint_of(self.pipeline.name)
        planned = read_batch_offsets(checkpoint, batch_id)
        before = read_batch_offsets(checkpoint, batch_id - 1)
        start = before.sources.get(name) if before else None
        start = start or read_initial_offsets(checkpoint, name)
        end = planned.sources.get(name) if planned else None
        source = self.pipeline.kafka_inputs[name]
        reader = KafkaReader(source, self.settings, self.accepts_loss)
        rows = reader.read_range(session, start, end or start)
        return rows.where(F.col(MALFORMED).isNotNull()).select(MALFORMED)


def _shape(result: DataFrame, adds_batch: bool) -> DataFrame:
    return add_batch(result, 0) if adds_batch else result


def _leave_malformed(stream: DataFrame) -> DataFrame:
    if MALFORMED not in stream.columns:
        return stream
    return stream.where(F.col(MALFORMED).isNull()).drop(MALFORMED)
