"""Kafka's records as columns: a stream of them, or a range once more."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamReader

from tidegate.core.connection import KafkaConnection, read_connection
from tidegate.core.ends.kafka import KafkaEnds, Offsets
from tidegate.core.settings import Settings
from tidegate.core.spec.kafka import PROVENANCE, KafkaSource
from tidegate.core.values.schemas import Schemas, load_schemas
from tidegate.spark.values.decoding import decode

_EARLIEST = -2


@dataclass(frozen=True)
class KafkaReader:
    """Reads a Kafka source: the columns of its values, and where each record came from."""

    source: KafkaSource
    settings: Settings
    accepts_loss: bool

    def open_stream(self, reader: DataStreamReader) -> DataFrame:
        """Open all records as a stream, bounded per batch."""
        limit = {"maxOffsetsPerTrigger": str(self.source.max_offsets_per_trigger)}
        options = self._options | self._subscribe() | self._start() | limit
        return self.decode(reader.format("kafka").options(**options).load())

    def read_range(self, session: SparkSession, start: Offsets, end: Offsets) -> DataFrame:
        """Read a range of offsets once more, decoded as the stream decodes it."""
        begin = {
            topic: {number: start.get(topic, {}).get(number, 0) for number in numbers}
            for topic, numbers in end.items()
        }
        assigned = {topic: list(map(int, numbers)) for topic, numbers in end.items()}
        options = self._options | {
            "assign": json.dumps(assigned),
            "startingOffsets": json.dumps(begin),
            "endingOffsets": json.dumps(end),
        }
        return self.decode(session.read.format("kafka").options(**options).load())

    def decode(self, records: DataFrame) -> DataFrame:
        """Turn records, as Kafka has them, into columns."""
        return decode(records, self.source, self._choose_columns(), self._schemas)

    @cached_property
    def _connection(self) -> KafkaConnection:
        name = self.source.connection
        return KafkaConnection.from_options(name, read_connection(name))

    @cached_property
    def _schemas(self) -> Schemas | None:
        topic = self.source.topics[0] if self.source.topics else ""
        return load_schemas(self.source.value, self.settings.pipelines, topic)

    @property
    def _options(self) -> dict[str, str]:
        source = self.source
        options = {f"kafka.{key}": value for key, value in self._connection.to_java().items()}
        options |= source.options
        options |= {
            "failOnDataLoss": str(source.fail_on_data_loss and not self.accepts_loss).lower(),
            "includeHeaders": str(source.headers).lower(),
            "kafka.isolation.level": source.isolation.value,
        }
        if source.min_partitions:
            options["minPartitions"] = str(source.min_partitions)
        if source.group_prefix:
            options["groupIdPrefix"] = source.group_prefix
        return options

    def _subscribe(self) -> dict[str, str]:
        source = self.source
        if source.topics:
            return {"subscribe": ",".join(source.topics)}
        if source.topic_pattern:
            return {"subscribePattern": source.topic_pattern}
        assigned = {topic: list(numbers) for topic, numbers in (source.partitions or {}).items()}
        return {"assign": json.dumps(assigned)}

    def _start(self) -> dict[str, str]:
        source = self.source
        if source.starting_timestamp:
            return {
                "startingTimestamp": str(int(source.starting_timestamp.timestamp() * 1000)),
                "startingOffsetsByTimestampStrategy": "latest",
            }
        if source.starting_offsets:
            # Spark wants every partition named.
            offsets = {
                topic: {
                    number: source.starting_offsets.get(topic, {}).get(int(number), _EARLIEST)
                    for number in numbers
                }
                for topic, numbers in KafkaEnds(self._connection).read(source).ends.items()
            }
            return {"startingOffsets": json.dumps(offsets)}
        return {"startingOffsets": source.starting or "earliest"}

    def _choose_columns(self) -> list[Column]:
        columns = []
        if self.source.key:
            columns.append(F.col("key").cast(self.source.key).alias("key"))
        if self.source.headers:
            columns.append(F.col("headers"))
        if self.source.provenance:
            columns += [F.col(name.removeprefix("_")).alias(name) for name in PROVENANCE]
        return columns
