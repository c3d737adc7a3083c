"""A real Kafka broker, and what tests do to its topics."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

from demo.broker import Broker

_TIMEOUT = 30
_LEVELS = (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)


class Cluster:
    """Makes topics on a broker, fills them and damages them."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.admin = AdminClient({"bootstrap.servers": broker.address})

    @property
    def options(self) -> dict[str, str]:
        """The options of a connection to it."""
        return {"bootstrap.servers": self.broker.address}

    def create(self, name: str | None = None, partitions: int = 1, **config: str) -> str:
        """Create a topic and return its name; config with _ for each dot."""
        topic = name or f"t-{uuid4().hex[:8]}"
        spelled = {key.replace("_", "."): value for key, value in config.items()}
        new = NewTopic(topic, partitions, 1, config=spelled)
        self.admin.create_topics([new])[topic].result(_TIMEOUT)
        return topic

    def delete(self, topic: str) -> None:
        """Delete a topic, and wait until it is gone."""
        self.admin.delete_topics([topic])[topic].result(_TIMEOUT)
        while topic in self.admin.list_topics(timeout=_TIMEOUT).topics:
            pass

    def read_ends(self, topic: str) -> dict[int, int]:
        """Find where each partition of a topic ends."""
        numbers = self.admin.list_topics(topic, timeout=_TIMEOUT).topics[topic].partitions
        asked = self.admin.list_offsets(
            {TopicPartition(topic, number): OffsetSpec.latest() for number in numbers}
        )
        return {where.partition: found.result(_TIMEOUT).offset for where, found in asked.items()}

    def read(self, topic: str) -> list[Message]:
        """Read all records that a topic still has, whatever gaps are between their offsets."""
        options = {"group.id": "test", "enable.auto.commit": False, "enable.partition.eof": True}
        consumer = Consumer(self.options | options)
        waiting = set(self.read_ends(topic))
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in waiting])
        records = []
        while waiting:
            for record in consumer.consume(10_000, timeout=0.1):
                if record.error() is None:
                    records.append(record)
                elif record.error().code() == KafkaError._PARTITION_EOF:
                    waiting.discard(record.partition())
                else:
                    raise KafkaException(record.error())
        consumer.close()
        return records

    def add_partitions(self, topic: str, total: int) -> None:
        """Give a topic more partitions."""
        self.admin.create_partitions([NewPartitions(topic, total)])[topic].result(_TIMEOUT)

    def expire(self, topic: str, before: int, partition: int = 0) -> None:
        """Delete the records before an offset, as retention does."""
        where = TopicPartition(topic, partition, before)
        self.admin.delete_records([where])[where].result(_TIMEOUT)

    def produce(
        self,
        topic: str,
        values: Iterable[Any],
        *,
        partition: int = 0,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timestamp_ms: int = 0,
    ) -> None:
        """Send values to a partition: bytes as they are, others as JSON; None is a tombstone."""
        options = {"linger.ms": 5, "message.max.bytes": 8_000_000}
        producer = Producer(self.options | options)  # an older one may not know new partitions yet
        for value in values:
            self._send(producer, topic, value, partition, key, headers, timestamp_ms)
        producer.flush(_TIMEOUT)

    def transact(self, topic: str, values: Iterable[Any], *, ends: str) -> Producer:
        """Send values in a transaction that is committed, aborted or left open."""
        producer = Producer(
            {"bootstrap.servers": self.broker.address, "transactional.id": uuid4().hex}
        )
        producer.init_transactions(_TIMEOUT)
        producer.begin_transaction()
        for value in values:
            self._send(producer, topic, value, 0, None, None, 0)
        producer.flush(_TIMEOUT)
        if ends == "commit":
            producer.commit_transaction(_TIMEOUT)
        elif ends == "abort":
            producer.abort_transaction(_TIMEOUT)
        while ends != "never" and len({self._find_end(topic, level) for level in _LEVELS}) > 1:
            pass  # the broker marks the end of a transaction a moment later
        return producer

    def _find_end(self, topic: str, level: IsolationLevel) -> int:
        where = TopicPartition(topic, 0)
        asked = self.admin.list_offsets({where: OffsetSpec.latest()}, isolation_level=level)
        return int(asked[where].result(_TIMEOUT).offset)

    @staticmethod
    def _send(
        producer: Producer,
        topic: str,
        value: Any,
        partition: int,
        key: str | None,
        headers: Mapping[str, str] | None,
        timestamp_ms: int,
    ) -> None:
        def check(error: Any, _: Any) -> None:
            if error:
                raise KafkaException(error)

        as_is = value is None or isinstance(value, bytes)
        producer.produce(
            topic,
            value if as_is else json.dumps(value).encode(),
            partition=partition,
            key=key,
            headers=dict(headers) if headers else None,
            timestamp=timestamp_ms,
            on_delivery=check,
        )
        producer.poll(0)
