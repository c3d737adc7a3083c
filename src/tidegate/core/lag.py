"""How far a pipeline is behind Kafka, and how long what it has yet to read will be kept."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.connection import KafkaConnection, ReadConnection, read_connection
from tidegate.core.ends.kafka import KafkaEnds, Offsets, TopicEnds
from tidegate.core.ends.sample import Sample, sample_records
from tidegate.core.settings import Settings
from tidegate.core.spec.kafka import KafkaSource
from tidegate.core.spec.pipeline import Pipeline


@dataclass(frozen=True)
class PartitionLag:
    """How far one partition is read."""

    pipeline: str
    topic: str
    partition: int
    committed: int | None
    """None where nothing is committed yet; then the lag counts from the first record."""
    end: int
    lag_records: int
    lag_bytes: int | None
    """Estimated from the size of the next records; keys and values, uncompressed."""
    lag_seconds: float | None
    """The age of the next record to be read."""
    headroom_records: int | None
    """How many records before the position are still kept; below 0, so many are lost."""
    headroom_seconds: float | None
    """How long the next record will be kept at the least; None where nothing waits or expires."""


def measure_lag(
    pipeline: Pipeline, settings: Settings, connect: ReadConnection = read_connection
) -> list[PartitionLag]:
    """Measure the lag of every partition that a pipeline reads."""
    return [
        lag
        for name, source in pipeline.kafka_inputs.items()
        for lag in _measure_source(pipeline.name, name, source, settings, connect)
    ]


def _measure_source(
    pipeline: str, name: str, source: KafkaSource, settings: Settings, connect: ReadConnection
) -> list[PartitionLag]:
    connection = KafkaConnection.from_options(source.connection, connect(source.connection))
    cluster = KafkaEnds(connection)
    ends = cluster.read(source)
    committed = _read_committed(pipeline, name, settings)
    waiting = [
        (topic, number, start)
        for topic, number, start in _list_starts(committed, ends)
        if start < ends.ends[topic][number]
    ]
    samples = sample_records(connection, source.isolation, waiting)
    retention = cluster.read_retention(ends.ends)
    return [
        _measure(
            pipeline,
            *(topic, number, committed.get(topic, {}).get(number)),
            ends,
            samples.get((topic, number)),
            retention[topic],
        )
        for topic, numbers in ends.ends.items()
        for number in numbers
    ]


def count_waiting(
    pipeline: Pipeline, settings: Settings, connect: ReadConnection = read_connection
) -> int:
    """Count the offsets that a Kafka pipeline has yet to read, with as little as possible asked."""
    waiting = 0
    for name, source in pipeline.kafka_inputs.items():
        connection = KafkaConnection.from_options(source.connection, connect(source.connection))
        ends = KafkaEnds(connection).read(source)
        starts = _list_starts(_read_committed(pipeline.name, name, settings), ends)
        waiting += sum(ends.ends[topic][number] - start for topic, number, start in starts)
    return waiting


def _read_committed(pipeline: str, source: str, settings: Settings) -> Offsets:
    return read_progress(settings.checkpoint_of(pipeline)).find_committed(source) or {}


def _list_starts(committed: Offsets, ends: TopicEnds) -> Iterator[tuple[str, str, int]]:
    for topic, numbers in ends.beginnings.items():
        for number, beginning in numbers.items():
            yield topic, number, max(beginning, committed.get(topic, {}).get(number, 0))


def _measure(
    pipeline: str,
    topic: str,
    number: str,
    committed: int | None,
    ends: TopicEnds,
    sample: Sample | None,
    retention_ms: int | None,
) -> PartitionLag:
    beginning, end = ends.beginnings[topic][number], ends.ends[topic][number]
    lag = max(0, end - (beginning if committed is None else committed))
    age = time.time() - sample.first_ms / 1000 if sample and sample.first_ms else None
    is_kept_for = None if retention_ms is None or age is None else retention_ms / 1000 - age
    return PartitionLag(
        pipeline=pipeline,
        topic=topic,
        partition=int(number),
        committed=committed,
        end=end,
        lag_records=lag,
        lag_bytes=0 if lag == 0 else round(sample.mean_bytes * lag) if sample else None,
        lag_seconds=0.0 if lag == 0 else None if age is None else round(max(0.0, age), 1),
        headroom_records=None if committed is None else committed - beginning,
        headroom_seconds=None if is_kept_for is None else round(is_kept_for, 1),
    )
