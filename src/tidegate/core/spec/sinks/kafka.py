"""A Kafka topic as a sink."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pydantic import Field

from tidegate.core.spec.base import Column
from tidegate.core.spec.kafka import ConnectionName, KafkaOptions, Topic
from tidegate.core.spec.sinks.base import SinkModel


class KafkaSink(SinkModel):
    """Send rows to a Kafka topic; of a batch that is sent again, only what the topic lacks."""

    type: Literal["kafka"]
    topic: Topic
    connection: ConnectionName = "kafka_default"
    value: Column | None = Field(
        default=None,
        description="The column that is sent: bytes as they are, all else as text. Where none is "
        "named, all columns are sent as JSON.",
    )
    key: Column | None = Field(default=None, description="The column that is the record's key.")
    headers: Column | None = Field(
        default=None,
        description="A column of headers, array<struct<key string, value binary>>; those that begin "
        "with tidegate- are left out.",
    )
    partition: Column | None = Field(
        default=None,
        description="The column that says which partition; by key where none is named.",
    )
    options: KafkaOptions = Field(
        default_factory=dict, description="Options of Spark's Kafka sink and its producer."
    )

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        yield from super().find_conflicts(given)
        options = given.get("options")
        keys = sorted(map(str, options)) if isinstance(options, Mapping) else []
        taken = [key for key in keys if key.lower() in _TAKEN]
        if taken:
            yield f"options must not hold {', '.join(taken)}: a batch could not be sent exactly once"
        if given.get("value") and given.get("columns"):
            yield "takes value or columns: one column as it is, or several as JSON"


_TAKEN = frozenset(
    "topic kafka.bootstrap.servers kafka.acks kafka.enable.idempotence kafka.transactional.id "
    "kafka.key.serializer kafka.value.serializer includeheaders".split()
)
