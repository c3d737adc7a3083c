"""Kafka's records as a stream of columns."""

from __future__ import annotations

import json

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from tidegate.core.connection import KafkaConnection, read_connection
from tidegate.core.ends.kafka import KafkaEnds, Offsets
from tidegate.core.spec.kafka import PROVENANCE, KafkaSource
from tidegate.spark.decoding import decode

_EARLIEST = -2


def open_connection(source: KafkaSource) -> KafkaConnection:
    """Find how to reach the source's cluster, from the driver's side."""
    return KafkaConnection.from_options(source.connection, read_connection(source.connection))


def open_kafka(session: SparkSession, source: KafkaSource, *, accepts_loss: bool) -> DataFrame:
    """Open a Kafka source: the columns of its values, and where each record came from."""
    connection = open_connection(source)
    options = _spell_options(source, connection, accepts_loss=accepts_loss)
    options |= _subscribe(source) | _start(source, connection)
    options["maxOffsetsPerTrigger"] = str(source.max_offsets_per_trigger)
    records = session.readStream.format("kafka").options(**options).load()
    return decode(records, source.value, beside=_choose_columns(source))


def read_kafka_range(
    session: SparkSession,
    source: KafkaSource,
    start: Offsets,
    end: Offsets,
    *,
    accepts_loss: bool,
) -> DataFrame:
    """Read a range of offsets once more, decoded as the stream decodes it."""
    begin = {
        topic: {number: start.get(topic, {}).get(number, 0) for number in numbers}
        for topic, numbers in end.items()
    }
    options = _spell_options(source, open_connection(source), accepts_loss=accepts_loss)
    options |= {
        "assign": json.dumps({topic: list(map(int, numbers)) for topic, numbers in end.items()}),
        "startingOffsets": json.dumps(begin),
        "endingOffsets": json.dumps(end),
    }
    records = session.read.format("kafka").options(**options).load()
    return decode(records, source.value, beside=_choose_columns(source))


def _spell_options(
    source: KafkaSource, connection: KafkaConnection, *, accepts_loss: bool
) -> dict[str, str]:
    options = {f"kafka.{key}": value for key, value in connection.to_java().items()}
    options |= source.options
    options |= {
        "failOnDataLoss": str(source.fail_on_data_loss and not accepts_loss).lower(),
        "includeHeaders": str(source.headers).lower(),
        "kafka.isolation.level": source.isolation.value,
    }
    if source.min_partitions:
        options["minPartitions"] = str(source.min_partitions)
    if source.group_prefix:
        options["groupIdPrefix"] = source.group_prefix
    return options


def _subscribe(source: KafkaSource) -> dict[str, str]:
    if source.topics:
        return {"subscribe": ",".join(source.topics)}
    if source.topic_pattern:
        return {"subscribePattern": source.topic_pattern}
    assigned = {topic: list(numbers) for topic, numbers in (source.partitions or {}).items()}
    return {"assign": json.dumps(assigned)}


def _start(source: KafkaSource, connection: KafkaConnection) -> dict[str, str]:
    if source.starting_timestamp:
        return {
            "startingTimestamp": str(int(source.starting_timestamp.timestamp() * 1000)),
            "startingOffsetsByTimestampStrategy": "latest",
        }
    if source.starting_offsets:
        # Spark wants every partition named.
        ends = KafkaEnds(connection).read(source).ends
        offsets = {
            topic: {
                number: source.starting_offsets.get(topic, {}).get(int(number), _EARLIEST)
                for number in numbers
            }
            for topic, numbers in ends.items()
        }
        return {"startingOffsets": json.dumps(offsets)}
    return {"startingOffsets": (source.starting or "earliest")}


def _choose_columns(source: KafkaSource) -> list[Column]:
    columns = []
    if source.key:
        columns.append(F.col("key").cast(source.key).alias("key"))
    if source.headers:
        columns.append(F.col("headers"))
    if source.provenance:
        columns += [F.col(name.removeprefix("_")).alias(name) for name in PROVENANCE]
    return columns
