"""Where a pipeline writes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from tidegate.core.spec.base import Column, Location, Name, Options, SpecModel
from tidegate.core.spec.kafka import ConnectionName, Topic

QUARANTINE = "quarantine"
"""The name of the sink that every pipeline may have beside its own."""


class DeltaSink(SpecModel):
    """Append to a Delta table, each batch once; the table is created if it is missing."""

    type: Literal["delta"]
    table: Location
    name: Name = Field(
        default="main", description="Part of the transaction id: never change it on a live table."
    )
    partition_by: tuple[Column, ...] = ()
    cluster_by: tuple[Column, ...] = ()

    def name_writer(self, query_id: str) -> str:
        """Name a query to the table; with a batch's id it makes a transaction of its own."""
        return f"{query_id}:{self.name}"

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        if given.get("name") == QUARANTINE:
            yield f"name must not be {QUARANTINE!r}: tidegate writes what it puts aside by it"
        if given.get("partition_by") and given.get("cluster_by"):
            yield "takes partition_by or cluster_by, not both: Delta refuses the two"
        for field in ("partition_by", "cluster_by"):
            columns = given.get(field)
            lowered = [str(c).lower() for c in columns] if isinstance(columns, list | tuple) else []
            twice = sorted({column for column in lowered if lowered.count(column) > 1})
            if twice:
                yield f"{field} names {', '.join(twice)} more than once; Delta ignores case"


class KafkaSink(SpecModel):
    """Send rows to a Kafka topic; of a batch that is sent again, only what the topic lacks."""

    type: Literal["kafka"]
    topic: Topic
    connection: ConnectionName = "kafka_default"
    name: Name = Field(
        default="main", description="Part of each record's batch header: never change it."
    )
    value: Column | None = Field(
        default=None,
        description="The column sent as it is; all others as JSON where none is named.",
    )
    key: Column | None = Field(default=None, description="The column that is the record's key.")
    headers: Column | None = Field(
        default=None, description="A column of headers, array<struct<key string, value binary>>."
    )
    partition: Column | None = Field(
        default=None,
        description="The column that says which partition; by key where none is named.",
    )
    options: Options = Field(
        default_factory=dict, description="Options of Spark's Kafka sink and its producer."
    )

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        options = given.get("options")
        keys = sorted(map(str, options)) if isinstance(options, Mapping) else []
        taken = [key for key in keys if key.lower() in _TAKEN]
        if taken:
            yield f"options must not hold {', '.join(taken)}: a batch could not be sent exactly once"


_TAKEN = frozenset(
    "topic kafka.bootstrap.servers kafka.acks kafka.enable.idempotence kafka.transactional.id "
    "kafka.key.serializer kafka.value.serializer includeheaders".split()
)

Sink = Annotated[DeltaSink | KafkaSink, Field(discriminator="type")]
