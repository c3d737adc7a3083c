"""Values that are Avro records."""

from __future__ import annotations

import json
from functools import reduce
from operator import and_, or_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.avro.functions import from_avro

from tidegate.core.values.avro import AvroSchemas
from tidegate.spark.values.decoded import MISFIT, PARSED, Decoded

_FRAME = 5  # bytes before a record that names its schema


def decode_avro(records: DataFrame, schemas: AvroSchemas) -> Decoded:
    """Parse Avro by the schemas that its values may have been written with."""
    value = F.col("value")
    reason = None
    if schemas.writers:
        # A zero byte, the schema's id in four bytes, then the record.
        written = F.conv(F.hex(F.substring(value, 2, 4)), 16, 10).cast("int")
        payload = F.expr("substring(value, 6)")
        chain: Any = F
        for number, writer in schemas.writers.items():
            chain = chain.when(written == number, _from_avro(payload, writer, schemas.reader))
        parsed = chain
        known = ", ".join(map(str, schemas.writers))
        reason = F.when(
            (F.length(value) < _FRAME) | (F.hex(F.substring(value, 1, 1)) != "00"),
            "the value names no schema",
        ).when(
            ~written.isin(*schemas.writers),
            F.concat(
                F.lit("schema "), written, F.lit(f" is not one of {schemas.subject}: {known}")
            ),
        )
    else:
        parsed = _from_avro(value, schemas.reader, schemas.reader)
    frame = records.withColumn(PARSED, parsed)
    names = [field["name"] for field in schemas.fields]
    columns = [F.col(PARSED).getField(name).alias(name) for name in names]
    # Spark gives nulls for all fields of a value that does not parse.
    required = [field["name"] for field in schemas.fields if not _may_be_null(field["type"])]
    nulls = [F.col(PARSED).getField(name).isNull() for name in (required[:1] or names)]
    misfit = F.when(reduce(and_, nulls) & ~_is_all_null(schemas), MISFIT)
    return Decoded(frame, columns, misfit if reason is None else F.coalesce(reason, misfit))


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
