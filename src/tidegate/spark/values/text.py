"""Values that are JSON or CSV, and the fields that their schema does not name."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, DataType, StructType

from tidegate.core.spec.kafka import Decoding, ValueFormat
from tidegate.core.spec.schema import parse_columns
from tidegate.core.spec.unknown import RESCUED, OnUnknown
from tidegate.spark.values.decoded import MISFIT, NO_TEXT, PARSED, Decoded, fail_where
from tidegate.spark.values.refusal import complete_options, refuse_csv, refuse_exponents

_UNKNOWN = "__tidegate_unknown"
_FIELDS = "__tidegate_fields"
_CORRUPT = "__tidegate_corrupt"
_REFUSAL = "__tidegate_refusal"
_CASE_SENSITIVE = "spark.sql.caseSensitive"
_COLUMN_NAME = re.compile(r"[^ ,;{}()\n\t=]+")  # what Delta takes


def decode_text(records: DataFrame, decoding: Decoding, place: Column | None = None) -> Decoded:
    """Parse text by the columns of the spec; a record's place is told where it stops the run."""
    text = F.col("value").cast("string")
    is_json = decoding.format is ValueFormat.JSON
    refused = records.withColumn(_REFUSAL, _refuse(text, decoding, is_json=is_json))
    value = _parse(decoding, text, f"{decoding.value_schema}, {_CORRUPT} string")
    parsed = refused.withColumn(PARSED, F.when(F.col(_REFUSAL).isNull(), value))
    names = parse_columns(decoding.value_schema or "")
    columns = [F.col(PARSED).getField(name).alias(name) for name in names]
    reason = (
        F.when(~F.is_valid_utf8(text), NO_TEXT)
        .when(F.col(_REFUSAL).isNotNull(), F.col(_REFUSAL))
        .when(F.col(PARSED).isNull(), "the value is empty")
        .when(F.col(PARSED).getField(_CORRUPT).isNotNull(), MISFIT)
    )
    if not is_json:
        return Decoded(parsed, columns, reason)
    # Spark's parser stops after the first document, whatever follows it.
    documents = F.json_array_length(F.concat(F.lit("["), text, F.lit("]")))
    reason = reason.when(~documents.eqNullSafe(1), "the value is not one JSON document")
    policy = decoding.unknown_fields
    if policy is OnUnknown.DROP:
        return Decoded(parsed, columns, reason)
    parsed = parsed.withColumn(_UNKNOWN, _list_unknown(text, names))
    has_unknown = F.size(_UNKNOWN) > 0
    if policy is OnUnknown.FAIL:
        # What does not parse at all is told in its own words.
        named = F.concat(F.lit("unknown fields "), F.array_join(_UNKNOWN, ", "))
        return Decoded(fail_where(parsed, has_unknown, named, place), columns, reason)
    # Values are parsed once more only where there are any to be kept.
    fields = F.when(has_unknown, F.from_json(text, "map<string,variant>"))
    parsed = parsed.withColumn(_FIELDS, fields)
    columns.append(F.to_json(_choose_fields()).alias(RESCUED))
    is_lost = has_unknown & F.col(_FIELDS).isNull()
    return Decoded(parsed, columns, reason.when(is_lost, "its unknown fields cannot be told apart"))


def _refuse(text: Column, decoding: Decoding, *, is_json: bool) -> Column:
    """Say why a text is not to be parsed; null where it is."""
    schema = cast("StructType", StructType.fromDDL(decoding.value_schema or ""))
    absurd = refuse_exponents(text, schema, partial(_parse, decoding), is_json=is_json)
    return absurd if is_json else F.coalesce(refuse_csv(text, decoding.options), absurd)


def _parse(decoding: Decoding, text: Column, schema: str) -> Column:
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT} | decoding.options
    if decoding.format is ValueFormat.JSON:
        return F.from_json(text, schema, options)
    return F.from_csv(text, schema, complete_options(options))


def add_unknown_columns(rows: DataFrame, known: StructType | None) -> DataFrame:
    """Give each field that was rescued a column, typed as the table has it or as it looks."""
    rescued = rows.where(F.col(RESCUED).isNotNull()).select(RESCUED)
    found = _infer(rescued)
    types = {field.name.lower(): field.dataType for field in known.fields} if known else {}
    taken = Counter(field.name.lower() for field in found.fields)
    taken.update(name.lower() for name in rows.columns)
    # What cannot be a column of a table stays where it is: among the rescued fields.
    fields = [
        field
        for field in found.fields
        if taken[field.name.lower()] == 1 and _can_be_column(field.name, field.dataType)
    ]
    if not fields:
        return rows
    for field in fields:
        field.dataType = types.get(field.name.lower(), field.dataType)
    parsed = F.from_json(F.col(RESCUED), StructType(fields))
    return rows.withColumns({field.name: parsed.getField(field.name) for field in fields})


def _infer(rescued: DataFrame) -> StructType:
    conf = rescued.sparkSession.conf
    conf.set(_CASE_SENSITIVE, "true")  # JSON's names are, and two that differ by case may be there
    try:
        return rescued.sparkSession.read.json(rescued.rdd.map(lambda row: row[0])).schema
    finally:
        conf.unset(_CASE_SENSITIVE)


def _can_be_column(name: str, kind: DataType) -> bool:
    if not _COLUMN_NAME.fullmatch(name):
        return False
    match kind:
        case ArrayType():
            return _can_be_column(name, kind.elementType)
        case StructType():
            names = [field.name.lower() for field in kind.fields]
            has_twins = len(set(names)) < len(names)
            inner = (_can_be_column(field.name, field.dataType) for field in kind.fields)
            return not has_twins and all(inner)
    return True


def _list_unknown(text: Column, names: tuple[str, ...]) -> Column:
    return F.array_except(F.json_object_keys(text), F.array(*map(F.lit, names)))


def _choose_fields() -> Column:
    unknown = F.col(_UNKNOWN)
    return F.map_filter(_FIELDS, lambda name, _: F.array_contains(unknown, name))
