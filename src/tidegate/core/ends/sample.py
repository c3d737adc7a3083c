"""A few records from where a reader stands: how old the next one is, and how large they are."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as Partition

from tidegate.core.connection import KafkaConnection
from tidegate.core.spec.kafka import Isolation

_RECORDS = 500
_TIMEOUT_SECONDS = 15.0
_POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Sample:
    """What was seen of a partition's next records."""

    first_ms: int | None
    """When the next record was written."""
    mean_bytes: float


def sample_records(
    connection: KafkaConnection, isolation: Isolation, starts: Iterable[tuple[str, str, int]]
) -> dict[tuple[str, str], Sample]:
    """Read some records of each partition from an offset on, without committing anything."""
    partitions = [Partition(topic, int(number), offset) for topic, number, offset in starts]
    if not partitions:
        return {}
    consumer = Consumer(_spell(connection, isolation))
    try:
        consumer.assign(partitions)
        seen = _read_some(consumer, {(part.topic, part.partition) for part in partitions})
    finally:
        consumer.close()
    return {
        (topic, str(number)): _sum_up(messages)
        for (topic, number), messages in seen.items()
        if messages
    }


def _spell(connection: KafkaConnection, isolation: Isolation) -> dict[str, Any]:
    return {
        **connection.to_librdkafka(),
        "group.id": "tidegate-lag",  # asked for, and not used
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "isolation.level": isolation.value,
        "max.partition.fetch.bytes": 64 * 1024,
        "log_level": 0,
    }


def _read_some(
    consumer: Consumer, waiting: set[tuple[str, int]]
) -> Mapping[tuple[str, int], list[Message]]:
    """Read until every partition gave a record or came to its end."""
    seen: dict[tuple[str, int], list[Message]] = {place: [] for place in waiting}
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while waiting and time.monotonic() < deadline:
        for message in consumer.consume(_RECORDS, timeout=_POLL_SECONDS):
            place = (str(message.topic()), int(message.partition() or 0))
            error = message.error()
            if error is None:
                seen[place].append(message)
            if error is None or error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                waiting.discard(place)
    return seen


def _sum_up(messages: list[Message]) -> Sample:
    kind, timestamp_ms = messages[0].timestamp()
    sizes = [len(message.key() or b"") + len(message.value() or b"") for message in messages]
    is_known = kind != TIMESTAMP_NOT_AVAILABLE and timestamp_ms > 0
    return Sample(timestamp_ms if is_known else None, sum(sizes) / len(sizes))
