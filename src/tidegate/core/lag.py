"""How far a pipeline is behind Kafka, and how long what it has yet to read will be kept."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.connection import KafkaConnection, ReadConnection, read_connection
from tidegate.core.ends.kafka import KafkaEnds
from tidegate.core.ends.sample import Sample, sample_records
from tidegate.core.ledger import Ledger
from tidegate.core.settings import Settings
from tidegate.core.spec.kafka import KafkaSource
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.waiting import Unit, Waiting
from tidegate.core.work.finding import pick_source_ids
from tidegate.core.work.kafka import KafkaWork, Position


@dataclass(frozen=True)
class PartitionLag:
    """How far one partition is read."""

    pipeline: str
    topic: str
    partition: int
    committed: int | None
    """None where nothing is committed yet; then the lag counts from where a run would begin."""
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
    """Measure the lag of every partition that a pipeline reads; refuse what plan would refuse.

    Expired records are no such thing: their number is part of the answer.
    """
    return [
        lag
        for name, source in pipeline.kafka_inputs.items()
        for lag in _measure_source(pipeline.name, name, source, settings, connect)
    ]


def measure_waiting(
    pipeline: Pipeline, settings: Settings, connect: ReadConnection = read_connection
) -> dict[str, Waiting]:
    """Measure what waits in each Kafka source, with the age of the oldest and its time left."""
    return {
        name: _sum_up(_measure_source(pipeline.name, name, source, settings, connect))
        for name, source in pipeline.kafka_inputs.items()
    }


def _sum_up(lags: list[PartitionLag]) -> Waiting:
    waiting = [lag for lag in lags if lag.lag_records]
    ages = (lag.lag_seconds for lag in waiting if lag.lag_seconds is not None)
    headrooms = (lag.headroom_seconds for lag in waiting if lag.headroom_seconds is not None)
    return Waiting(
        Unit.RECORDS,
        sum(lag.lag_records for lag in waiting),
        max(ages, default=None),
        min(headrooms, default=None),
    )


def _measure_source(
    pipeline: str, name: str, source: KafkaSource, settings: Settings, connect: ReadConnection
) -> list[PartitionLag]:
    work = _look_at(pipeline, name, source, settings, connect)
    cluster = KafkaEnds(work.connection)
    position = work.locate(cluster)
    samples = sample_records(work.connection, source.isolation, _list_waiting(position))
    retention = cluster.read_retention(position.ends.ends)
    return [
        _measure(
            pipeline,
            *(topic, number, position),
            samples.get((topic, number)),
            retention[topic],
        )
        for topic, numbers in position.ends.ends.items()
        for number in numbers
    ]


def count_waiting(
    pipeline: Pipeline, settings: Settings, connect: ReadConnection = read_connection
) -> int:
    """Count the offsets that a Kafka pipeline has yet to read, with as little as possible asked."""
    works = [
        _look_at(pipeline.name, name, source, settings, connect)
        for name, source in pipeline.kafka_inputs.items()
    ]
    return sum(work.locate(KafkaEnds(work.connection)).waiting for work in works)


def _look_at(
    pipeline: str, name: str, source: KafkaSource, settings: Settings, connect: ReadConnection
) -> KafkaWork:
    checkpoint = settings.checkpoint_of(pipeline)
    latest = Ledger.beside(settings.state_of(pipeline)).find_latest()
    return KafkaWork(
        pipeline,
        name,
        source,
        KafkaConnection.from_options(source.connection, connect(source.connection)),
        # Read before the topics' ends: a run that commits in between must not seem to be past them.
        read_progress(checkpoint),
        checkpoint,
        pick_source_ids(latest.plan.source_ids if latest else {}, name),
    )


def _list_waiting(position: Position) -> Iterator[tuple[str, str, int]]:
    for topic, numbers in position.start.items():
        for number, start in numbers.items():
            first = max(start, position.ends.beginnings[topic][number])
            if first < position.ends.ends[topic][number]:
                yield topic, number, first


def _measure(
    pipeline: str,
    topic: str,
    number: str,
    position: Position,
    sample: Sample | None,
    retention_ms: int | None,
) -> PartitionLag:
    beginning, end = position.ends.beginnings[topic][number], position.ends.ends[topic][number]
    committed = (position.committed or {}).get(topic, {}).get(number)
    first = max(beginning, position.start[topic][number]) if committed is None else committed
    lag = max(0, end - first)
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
