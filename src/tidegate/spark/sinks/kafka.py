"""Sending to a Kafka topic, each row of each batch once.

Kafka cannot pass over a batch that it has, so every record says which batch and which row it is. Before a
batch is sent for the first time, the topic's ends are written down; a batch that is sent again reads the
topic from there on, and sends only the rows that it does not find.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType
from upath import UPath

from tidegate.core.connection import KafkaConnection, read_connection
from tidegate.core.ends.kafka import KafkaEnds
from tidegate.core.errors import SinkError
from tidegate.core.ledger import SinkRecord
from tidegate.core.spec.sinks.kafka import KafkaSink
from tidegate.spark.sinks.attempt import refuse_second_attempts
from tidegate.spark.sinks.columns import require_columns
from tidegate.spark.sinks.marker import BatchMarker
from tidegate.spark.sinks.record import HEADERS, refuse_types, spell_bytes, spell_headers

BATCH_HEADER = "tidegate-batch"
ROW_HEADER = "tidegate-row"

_OWN_HEADERS = "tidegate-"
_ROW_ID = "__tidegate_row"


class KafkaSend:
    """A topic that a query sends to."""

    is_observed = False  # Spark's Kafka sink runs its rows where an observation does not see them

    def __init__(self, sink: KafkaSink, state: UPath) -> None:
        self.sink = sink
        self.name = sink.name
        self._marker = BatchMarker(state, sink.name)
        self._connection = KafkaConnection.from_options(
            sink.connection, read_connection(sink.connection)
        )

    def prepare(self, session: SparkSession, schema: StructType) -> None:  # noqa: ARG002
        """Check that the columns and the topic are there, and that Kafka can take the columns."""
        sink = self.sink
        named = [sink.value, sink.key, sink.headers, sink.partition, *sink.columns]
        require_columns(sink.topic, named, schema)
        refuse_types(sink, schema)
        KafkaEnds(self._connection).read_topic_ends(sink.topic)

    def read_schema(self, session: SparkSession) -> StructType | None:  # noqa: ARG002
        """Say that a topic has no columns of its own."""
        return None

    def write(self, batch: DataFrame, batch_id: int, query_id: str) -> SinkRecord:
        """Send a batch; of one that was sent before, only what the topic does not hold."""
        tag = self._marker.name(batch_id, query_id)
        begun = self._marker.find(batch_id, query_id)
        records, held_count = self._shape(batch, tag), 0
        if begun:
            held = self._read_held(batch.sparkSession, tag, begun)
            held_count = held.count()
            records = records.join(held, _ROW_ID, "left_anti")
        else:
            cluster, topic = KafkaEnds(self._connection), self.sink.topic
            facts = {
                "ends": dict(cluster.read_topic_ends(topic)),
                "id": cluster.read_topic_id(topic),
            }
            self._marker.note(batch_id, query_id, **facts)
        records = records.persist()  # made once: to be counted, and to be sent
        try:
            count = records.count()
            self._send(records.drop(_ROW_ID))
        finally:
            records.unpersist()
        self._marker.forget_before(batch_id, query_id)
        return SinkRecord(rows=held_count + count, version=None)

    def _send(self, records: DataFrame) -> None:
        options = {f"kafka.{key}": value for key, value in self._connection.to_java().items()}
        options |= self.sink.options
        options |= {"kafka.acks": "all", "kafka.enable.idempotence": "true"}
        refuse_second_attempts(records).write.format("kafka").options(**options).save()

    def _shape(self, batch: DataFrame, tag: str) -> DataFrame:
        """Give every row the columns that Spark's Kafka sink sends, and an id of its own."""
        sink, schema = self.sink, batch.schema
        taken = {column.lower() for column in (sink.headers, sink.partition) if column}
        rest = sink.columns or [name for name in batch.columns if name.lower() not in taken]
        document = F.to_json(F.struct(*rest)).cast("binary")
        partition = F.col(sink.partition) if sink.partition else F.lit(None)
        shaped = batch.select(
            F.lit(sink.topic).alias("topic"),
            spell_bytes(schema, sink.key).alias("key"),
            (spell_bytes(schema, sink.value) if sink.value else document).alias("value"),
            partition.cast("int").alias("partition"),
            spell_headers(schema, sink.headers, but=_OWN_HEADERS).alias("headers"),
        )
        numbered = shaped.withColumn(_ROW_ID, _name_row())
        added = F.array(_header(BATCH_HEADER, F.lit(tag)), _header(ROW_HEADER, F.col(_ROW_ID)))
        none = F.array().cast(HEADERS)
        return numbered.withColumn("headers", F.concat(F.coalesce("headers", none), added))

    def _read_held(self, session: SparkSession, tag: str, begun: Mapping[str, Any]) -> DataFrame:
        """Read which rows of a batch the topic holds already."""
        topic, cluster = self.sink.topic, KafkaEnds(self._connection)
        if begun.get("id") != cluster.read_topic_id(topic):
            raise SinkError(
                f"The topic {topic} is not the one that the batch was begun in: it was deleted and "
                "created anew.",
                cause="What of the batch had been sent is gone with the old one.",
                remedy=f"To send the whole batch to the new one, delete {self._marker.folder}; then "
                "run again.",
            )
        now, first = cluster.read_topic_ends(topic), cluster.read_topic_beginnings(topic)
        # What expired since then is not there to be read.
        begin = {n: max(begun["ends"].get(n, 0), first[n]) for n in now}
        options = {f"kafka.{key}": value for key, value in self._connection.to_java().items()}
        options |= {
            "assign": json.dumps({topic: list(map(int, now))}),
            "startingOffsets": json.dumps({topic: begin}),
            "endingOffsets": json.dumps({topic: dict(now)}),
            "includeHeaders": "true",
        }
        records = session.read.format("kafka").options(**options).load()
        return (
            records.where(_read_header(BATCH_HEADER) == tag)
            .select(_read_header(ROW_HEADER).alias(_ROW_ID))
            .distinct()
        )


def _name_row() -> Column:
    """Name a row by its content, and rows of the same content by their number.

    Which of them comes first does not matter: they are the same. So a replay gives the same names,
    whatever the order of its rows.
    """
    content = F.sha2(F.to_json(F.struct("key", "value", "partition", "headers")), 256)
    number = F.row_number().over(Window.partitionBy(content).orderBy(F.lit(1)))
    return F.concat_ws("-", content, number)


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))


def _read_header(name: str) -> Column:
    found = F.filter("headers", lambda header: header.key == name)
    return F.try_element_at(found, F.lit(-1)).value.cast("string")  # ours are added at the end
