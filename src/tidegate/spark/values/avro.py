"""Values that are Avro records."""

from __future__ import annotations

import json
from functools import reduce
from operator import and_, or_
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StringType

from tidegate.core.values.avro import AvroSchemas
from tidegate.spark.values.decoded import MISFIT, PARSED, Decoded
from tidegate.spark.values.record import RecordChecker

_FAULT = "__tidegate_fault"


def decode_avro(records: DataFrame, schemas: AvroSchemas) -> Decoded:
    """Parse Avro by the schemas that its values may have been written with."""
    fault = F.col(_FAULT)
    parsed = F.when(fault.isNull(), _parse(schemas))
    frame = records.withColumn(_FAULT, _find_fault(schemas)).withColumn(PARSED, parsed)
    names = [field["name"] for field in schemas.fields]
    columns = [F.col(PARSED).getField(name).alias(name) for name in names]
    # Spark gives nulls for all fields of a value that does not parse.
    required = [field["name"] for field in schemas.fields if not _may_be_null(field["type"])]
    nulls = [F.col(PARSED).getField(name).isNull() for name in (required[:1] or names)]
    misfit = F.when(reduce(and_, nulls) & ~_is_all_null(schemas), MISFIT)
    return Decoded(frame, columns, F.coalesce(fault, misfit))


def _find_fault(schemas: AvroSchemas) -> Column:
    """Find why a value must not be given to Avro's reader; null where it may."""
    checker = RecordChecker(schemas.reader, dict(schemas.writers), schemas.subject)

    def find(values: pa.Array) -> pa.Array:
        return pa.array([checker.find_fault(value) for value in values.to_pylist()], pa.string())

    # Called deterministic, it would be moved into filters, and so be called twice.
    find_column: Any = arrow_udf(find, StringType())  # type: ignore[call-overload]
    return cast("Column", find_column.asNondeterministic()("value"))


def _parse(schemas: AvroSchemas) -> Column:
    if not schemas.writers:
        return _from_avro(F.col("value"), schemas.reader, schemas.reader)
    # A zero byte, the schema's id in four bytes, then the record.
    written = F.conv(F.hex(F.substring("value", 2, 4)), 16, 10).cast("int")
    payload = F.expr("substring(value, 6)")
    chain: Any = F
    for number, writer in schemas.writers.items():
        chain = chain.when(written == number, _from_avro(payload, writer, schemas.reader))
    return cast("Column", chain)


def _is_all_null(schemas: AvroSchemas) -> Column:
    """Whether a value says of each of its fields that it is null, in a byte each."""
    value = F.hex("value")
    if not schemas.writers:
        return value.rlike(f"^(0[02]){{{len(schemas.fields)}}}$")
    frames = (
        f"^00{number:08X}(0[02]){{{len(json.loads(text)['fields'])}}}$"
        for number, text in schemas.writers.items()
    )
    return reduce(or_, (value.rlike(frame) for frame in frames))


def _from_avro(payload: Column, writer: str, reader: str) -> Column:
    return from_avro(payload, writer, {"mode": "PERMISSIVE", "avroSchema": reader})


def _may_be_null(kind: Any) -> bool:
    return kind == "null" or (isinstance(kind, list) and "null" in kind)
