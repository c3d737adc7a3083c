"""The bytes of a record's value as columns; what does not parse is told apart, not lost.

The result has a column that no step sees, `MALFORMED`: null where the value parsed, and otherwise
the record itself with the reason.
"""

from __future__ import annotations

from collections import Counter

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from tidegate.core.errors import SourceError
from tidegate.core.spec.kafka import Decoding, KafkaSource, OnMalformed, ValueFormat
from tidegate.core.values.avro import AvroSchemas
from tidegate.core.values.protobuf import ProtobufSchemas
from tidegate.core.values.schemas import Schemas
from tidegate.spark.values.avro import decode_avro
from tidegate.spark.values.decoded import NO_TEXT, Decoded, fail_where
from tidegate.spark.values.protobuf import decode_protobuf
from tidegate.spark.values.text import decode_text

MALFORMED = "__tidegate_malformed"
_RECORD = ("topic", "partition", "offset", "timestamp", "key", "value")


def decode(
    records: DataFrame,
    source: KafkaSource,
    beside: list[Column],
    schemas: Schemas | None = None,
) -> DataFrame:
    """Turn records into columns, beside others that are taken as they are."""
    decoding = source.value
    decoded = _parse(records, decoding, schemas)
    if not source.may_be_malformed:
        return records.select(*decoded.columns, *beside)
    # A record without a value is a tombstone: a row of nulls, which its key gives a meaning.
    reason = F.when(F.col("value").isNotNull(), decoded.reason)
    if source.key == "string":
        is_text = F.is_valid_utf8(F.col("key").cast("string"))
        reason = F.when(~is_text, "the key is not UTF-8 text").otherwise(reason)
    if decoding.on_malformed is OnMalformed.FAIL:
        sound = fail_where(decoded.records, reason.isNotNull(), reason)
        return _refuse_twins(sound.select(*decoded.columns, *beside))
    record = F.struct(reason.alias("reason"), *map(F.col, _RECORD))
    malformed = F.when(reason.isNotNull(), record).alias(MALFORMED)
    return _refuse_twins(decoded.records.select(*decoded.columns, *beside, malformed))


def _parse(records: DataFrame, decoding: Decoding, schemas: Schemas | None) -> Decoded:
    match decoding.format:
        case ValueFormat.BINARY:
            return Decoded(records, [F.col("value")], F.lit(None).cast("string"))
        case ValueFormat.STRING:
            text = F.col("value").cast("string")
            is_text = F.is_valid_utf8(text)
            return Decoded(records, [text.alias("value")], F.when(~is_text, NO_TEXT))
    match schemas:
        case AvroSchemas():
            return decode_avro(records, schemas)
        case ProtobufSchemas():
            return decode_protobuf(records, schemas)
        case None:
            return decode_text(records, decoding)


def _refuse_twins(rows: DataFrame) -> DataFrame:
    counted = Counter(name.lower() for name in rows.columns)
    twins = [name for name in counted if counted[name] > 1]
    if twins:
        raise SourceError(
            f"The values have {', '.join(twins)}, and so has what is added beside them.",
            remedy="Turn off source.key, source.headers or source.provenance, or rename the field.",
        )
    return rows
