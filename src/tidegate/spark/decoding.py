"""The bytes of a record's value as columns; what does not parse is told apart, not lost.

The result has a column that no step sees, `MALFORMED`: null where the value parsed, and otherwise
the record itself with the reason.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from tidegate.core.spec.kafka import RESCUED, Decoding, OnMalformed, OnUnknown, ValueFormat
from tidegate.core.spec.schema import parse_columns

MALFORMED = "__tidegate_malformed"
_PARSED = "__tidegate_parsed"
_FIELDS = "__tidegate_fields"
_CORRUPT = "__tidegate_corrupt"
_RECORD = ("topic", "partition", "offset", "timestamp", "key", "value")


def decode(records: DataFrame, decoding: Decoding, beside: list[Column]) -> DataFrame:
    """Turn records into columns, beside others that are taken as they are."""
    match decoding.format:
        case ValueFormat.BINARY:
            return records.select("value", *beside)
        case ValueFormat.STRING:
            return records.select(F.col("value").cast("string").alias("value"), *beside)
    return _decode_columns(records, decoding, beside)


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


def _decode_columns(records: DataFrame, decoding: Decoding, beside: list[Column]) -> DataFrame:
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
    reason = _tell_reason(text)
    if decoding.on_malformed is OnMalformed.FAIL:
        parsed = _fail_where(parsed, reason.isNotNull(), reason)
        return parsed.select(*columns, *beside)
    record = F.struct(reason.alias("reason"), *map(F.col, _RECORD))
    malformed = F.when(reason.isNotNull(), record).alias(MALFORMED)
    return parsed.select(*columns, *beside, malformed)


def _tell_reason(text: Column) -> Column:
    # A record without a value is a tombstone: a row of nulls, which its key gives a meaning.
    return F.when(F.col("value").isNull(), None).otherwise(
        F.when(~F.is_valid_utf8(text), "the value is not UTF-8 text")
        .when(F.col(_PARSED).isNull(), "the value is empty")
        .when(F.col(_PARSED).getField(_CORRUPT).isNotNull(), "the value does not fit the schema")
    )


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
