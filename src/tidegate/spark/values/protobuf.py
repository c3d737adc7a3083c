"""Values that are Protobuf messages.

Spark's own module for them cannot be had as a JAR for this Spark, so Google's library parses them in the
executors' Python, a batch of Arrow at a time.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tidegate.core.errors import SourceError
from tidegate.core.values.protobuf import ProtobufSchemas
from tidegate.spark.values.decoded import PARSED, Decoded
from tidegate.spark.values.message import (
    JSON_TYPES,
    TIMESTAMP,
    WRAPPERS,
    MessageParser,
    find_message,
)

_REASON = "reason"
_VALUE = "value"
_TYPES: dict[int, DataType] = {
    FieldDescriptor.CPPTYPE_INT32: IntegerType(),
    FieldDescriptor.CPPTYPE_UINT32: LongType(),
    FieldDescriptor.CPPTYPE_INT64: LongType(),
    FieldDescriptor.CPPTYPE_UINT64: DecimalType(20, 0),
    FieldDescriptor.CPPTYPE_FLOAT: FloatType(),
    FieldDescriptor.CPPTYPE_DOUBLE: DoubleType(),
    FieldDescriptor.CPPTYPE_BOOL: BooleanType(),
    FieldDescriptor.CPPTYPE_ENUM: StringType(),
}


def decode_protobuf(records: DataFrame, schemas: ProtobufSchemas) -> Decoded:
    """Parse messages; one that does not parse says why."""
    message = map_message(find_message(schemas.descriptors, schemas.message))
    result = StructType([StructField(_REASON, StringType()), StructField(_VALUE, message)])
    parser = MessageParser(
        schemas.descriptors, schemas.message, dict(schemas.writers), schemas.subject
    )
    kind = to_arrow_type(result, timezone="UTC")

    def parse(values: pa.Array) -> pa.Array:
        told = (parser.parse(value) for value in values.to_pylist())
        return pa.array([{_REASON: why, _VALUE: found} for why, found in told], kind)

    # Called deterministic, it would be moved into filters, and so be called twice.
    parse_column: Any = arrow_udf(parse, result)  # type: ignore[call-overload]  # any type will do
    parsed = records.withColumn(PARSED, parse_column.asNondeterministic()("value"))
    found = F.col(PARSED).getField(_VALUE)
    columns = [found.getField(field.name).alias(field.name) for field in message.fields]
    return Decoded(parsed, columns, F.col(PARSED).getField(_REASON))


def map_message(message: Descriptor, inside: tuple[str, ...] = ()) -> StructType:
    """Map a message to Spark's types, as docs/kafka.md tells."""
    if message.full_name in inside:
        raise SourceError(
            f"The Protobuf message {message.full_name} holds itself ({' > '.join(inside)}).",
            cause="A table's columns cannot be endless.",
            remedy="Read the values as format binary and take them apart in a Python step.",
        )
    within = (*inside, message.full_name)
    return StructType(
        [StructField(field.name, _map_field(field, within)) for field in message.fields]
    )


def _map_field(field: Any, inside: tuple[str, ...]) -> DataType:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name
        return MapType(_map_one(entry["key"], inside), _map_one(entry["value"], inside))
    one = _map_one(field, inside)
    return ArrayType(one) if field.is_repeated else one


def _map_one(field: Any, inside: tuple[str, ...]) -> DataType:
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        is_bytes = field.type == FieldDescriptor.TYPE_BYTES
        return BinaryType() if is_bytes else StringType()
    if field.message_type is None:
        return _TYPES[field.cpp_type]
    name = field.message_type.full_name
    if name == TIMESTAMP:
        return TimestampType()
    if name in JSON_TYPES:
        return StringType()
    if name in WRAPPERS:
        return _map_one(field.message_type.fields_by_name["value"], inside)
    return map_message(field.message_type, inside)
