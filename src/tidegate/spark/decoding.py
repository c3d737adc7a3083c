"""The bytes of a record's value as columns; what does not parse is told apart, not lost.

The result has a column that no step sees, `MALFORMED`: null where the value parsed, and otherwise
the record itself with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import StructType

from tidegate.core.registry import AvroSchemas
from tidegate.core.spec.kafka import RESCUED, Decoding, OnMalformed, OnUnknown, ValueFormat
from tidegate.core.spec.schema import parse_columns

MALFORMED = "__tidegate_malformed"
_PARSED = "__tidegate_parsed"
_FIELDS = "__tidegate_fields"
_CORRUPT = "__tidegate_corrupt"
_FRAME = 5  # bytes before an Avro record that names its schema
_RECORD = ("topic", "partition", "offset", "timestamp", "key", "value")


@dataclass(frozen=True)
class _Decoded:
    """Records with their values parsed, as far as they could be."""

    records: DataFrame
    columns: list[Column]
    reason: Column
    """Why a value could not be parsed; null where it could."""


def decode(
    records: DataFrame, decoding: Decoding, beside: list[Column], avro: AvroSchemas | None = None
) -> DataFrame:
    """Turn records into columns, beside others that are taken as they are."""
    match decoding.format:
        case ValueFormat.BINARY:
            return records.select("value", *beside)
        case ValueFormat.STRING:
            return records.select(F.col("value").cast("string").alias("value"), *beside)
    decoded = _decode_avro(records, avro) if avro else _decode_text(records, decoding)
    # A record without a value is a tombstone: a row of nulls, which its key gives a meaning.
    reason = F.when(F.col("value").isNotNull(), decoded.reason)
    if decoding.on_malformed is OnMalformed.FAIL:
        sound = _fail_where(decoded.records, reason.isNotNull(), reason)
        return sound.select(*decoded.columns, *beside)
    record = F.struct(reason.alias("reason"), *map(F.col, _RECORD))
    malformed = F.when(reason.isNotNull(), record).alias(MALFORMED)
    return decoded.records.select(*decoded.columns, *beside, malformed)


def add_unknown_columns(rows: DataFrame, known: StructType | None) -> DataFrame:
    """Give each field that was rescued a column, typed as the table has it or as it looks."""
    rescued = rows.where(F.col(RESCUED).isNotNull()).select(RESCUED)
    found = rows.sparkSession.read.json(rescued.rdd.map(lambda row: row[0])).schema
    if not found.fields:
        return rows
    types = {field.name: field.dataType for field in known.fields} if known else {}
    taken = {name.lower() for name in rows.columns}
    fields = [field for field in found.fields if field.name.lower() not in taken]
    for field in fields:
        field.dataType = types.get(field.name, field.dataType)
    parsed = F.from_json(F.col(RESCUED), StructType(fields))
    return rows.withColumns({field.name: parsed.getField(field.name) for field in fields})


def _decode_text(records: DataFrame, decoding: Decoding) -> _Decoded:
    text = F.col("value").cast("string")
    schema = f"{decoding.value_schema}, {_CORRUPT} string"
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT} | decoding.options
    parse = F.from_json if decoding.format is ValueFormat.JSON else F.from_csv
    parsed = records.withColumn(_PARSED, parse(text, schema, options))
    names = parse_columns(decoding.value_schema or "")
    columns = [F.col(_PARSED).getField(name).alias(name) for name in names]
    policy = decoding.unknown_fields
    if policy is not OnUnknown.DROP:
        parsed = parsed.withColumn(_FIELDS, F.from_json(text, "map<string,variant>"))
        unknown = _list_unknown(names)
        if policy is OnUnknown.FAIL:
            parsed = _fail_where(parsed, F.size(unknown) > 0, _name_fields(unknown))
        else:
            columns.append(F.when(F.size(unknown) > 0, F.to_json(unknown)).alias(RESCUED))
    reason = (
        F.when(~F.is_valid_utf8(text), "the value is not UTF-8 text")
        .when(F.col(_PARSED).isNull(), "the value is empty")
        .when(F.col(_PARSED).getField(_CORRUPT).isNotNull(), "the value does not fit the schema")
    )
    return _Decoded(parsed, columns, reason)


def _decode_avro(records: DataFrame, schemas: AvroSchemas) -> _Decoded:
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
    frame = records.withColumn(_PARSED, parsed)
    names = [field["name"] for field in schemas.fields]
    columns = [F.col(_PARSED).getField(name).alias(name) for name in names]
    # Spark gives nulls for all fields of a value that does not parse.
    required = [field["name"] for field in schemas.fields if not _may_be_null(field["type"])]
    nulls = [F.col(_PARSED).getField(name).isNull() for name in (required[:1] or names)]
    misfit = F.when(reduce(and_, nulls), "the value does not fit the schema")
    return _Decoded(frame, columns, misfit if reason is None else F.coalesce(reason, misfit))


def _from_avro(payload: Column, writer: str, reader: str) -> Column:
    return from_avro(payload, writer, {"mode": "PERMISSIVE", "avroSchema": reader})


def _may_be_null(kind: Any) -> bool:
    return kind == "null" or (isinstance(kind, list) and "null" in kind)


def _list_unknown(names: tuple[str, ...]) -> Column:
    known = F.array(*map(F.lit, names))
    return F.map_filter(_FIELDS, lambda name, _: ~F.array_contains(known, name))


def _name_fields(unknown: Column) -> Column:
    return F.concat(F.lit("unknown fields "), F.array_join(F.map_keys(unknown), ", "))


def _fail_where(records: DataFrame, condition: Column, reason: Column) -> DataFrame:
    place = F.concat_ws("-", "topic", "partition")
    told = F.concat(
        F.lit("tidegate: record "),
        place,
        F.lit(" at offset "),
        F.col("offset"),
        F.lit(": "),
        reason,
    )
    return records.where(F.when(condition, F.raise_error(told)).isNull())
