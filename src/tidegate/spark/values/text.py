"""Values that are JSON or CSV, and the fields that their schema does not name."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from tidegate.core.spec.kafka import RESCUED, Decoding, OnUnknown, ValueFormat
from tidegate.core.spec.schema import parse_columns
from tidegate.spark.values.decoded import MISFIT, PARSED, Decoded, fail_where

_FIELDS = "__tidegate_fields"
_CORRUPT = "__tidegate_corrupt"


def decode_text(records: DataFrame, decoding: Decoding) -> Decoded:
    """Parse text by the columns of the spec."""
    text = F.col("value").cast("string")
    schema = f"{decoding.value_schema}, {_CORRUPT} string"
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT} | decoding.options
    parse = F.from_json if decoding.format is ValueFormat.JSON else F.from_csv
    parsed = records.withColumn(PARSED, parse(text, schema, options))
    names = parse_columns(decoding.value_schema or "")
    columns = [F.col(PARSED).getField(name).alias(name) for name in names]
    policy = decoding.unknown_fields
    if policy is not OnUnknown.DROP:
        parsed = parsed.withColumn(_FIELDS, F.from_json(text, "map<string,variant>"))
        unknown = _list_unknown(names)
        if policy is OnUnknown.FAIL:
            parsed = fail_where(parsed, F.size(unknown) > 0, _name_fields(unknown))
        else:
            columns.append(F.when(F.size(unknown) > 0, F.to_json(unknown)).alias(RESCUED))
    reason = (
        F.when(~F.is_valid_utf8(text), "the value is not UTF-8 text")
        .when(F.col(PARSED).isNull(), "the value is empty")
        .when(F.col(PARSED).getField(_CORRUPT).isNotNull(), MISFIT)
    )
    return Decoded(parsed, columns, reason)


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


def _list_unknown(names: tuple[str, ...]) -> Column:
    known = F.array(*map(F.lit, names))
    return F.map_filter(_FIELDS, lambda name, _: ~F.array_contains(known, name))


def _name_fields(unknown: Column) -> Column:
    return F.concat(F.lit("unknown fields "), F.array_join(F.map_keys(unknown), ", "))
