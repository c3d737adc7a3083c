"""Applying a pipeline's steps to its stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from tidegate.core.errors import TransformError
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.transform import (
    ChangesStep,
    PythonStep,
    SqlStep,
    StaticDelta,
    StaticTable,
    Step,
)
from tidegate.spark.changes import read_changes
from tidegate.spark.functions import load_shipped_function
from tidegate.spark.sources import first_line


@dataclass(frozen=True)
class TransformContext:
    """What a Python step is given beside its rows."""

    pipeline: str
    run_id: str
    spark: SparkSession
    tables: Mapping[str, DataFrame]
    """The static tables of the spec, by name."""
    sources: Mapping[str, DataFrame] = field(default_factory=dict)
    """The sources of the spec by name, where it has several; a step is given the first."""


def apply_steps(
    rows: DataFrame, pipeline: Pipeline, settings: Settings, context: TransformContext
) -> DataFrame:
    """Apply the steps one after the other."""
    # A batch has a session of its own, with views of its own.
    context = replace(context, spark=rows.sparkSession)
    for number, step in enumerate(pipeline.transform, start=1):
        rows = _apply_step(rows, step, settings, context, f"Step {number} of {pipeline.name}")
    return rows


def _apply_step(
    rows: DataFrame, step: Step, settings: Settings, context: TransformContext, name: str
) -> DataFrame:
    match step:
        case SqlStep(sql=sql):
            result = _select(rows, sql, context.spark, name)
        case PythonStep(python=reference):
            result = _call(rows, reference, settings, context, name)
        case ChangesStep():
            result = read_changes(rows, step, name)
    if not isinstance(result, DataFrame):
        raise TransformError(
            f"{name} returned {type(result).__name__}, not a DataFrame.",
            remedy="Return the rows: a step is a function (df, context) -> df.",
        )
    if rows.isStreaming and not result.isStreaming:
        raise TransformError(
            f"{name} returned a static DataFrame.",
            cause="It does not come from the rows it was given, so it would never end.",
            remedy="Build the result on the step's input (in SQL: select from input).",
        )
    return result


def _select(rows: DataFrame, sql: str, session: SparkSession, name: str) -> DataFrame:
    rows.createOrReplaceTempView("input")
    try:
        return session.sql(sql)
    except (AnalysisException, ParseException) as error:
        raise TransformError(
            f"{name} is not valid SQL: {first_line(error)}",
            cause=f"Its input has the columns {', '.join(rows.columns)}.",
            remedy="Correct the step in the spec.",
        ) from error


def _call(
    rows: DataFrame, reference: str, settings: Settings, context: TransformContext, name: str
) -> Any:
    function = load_shipped_function(reference, settings.pipelines)
    try:
        return function(rows, context)
    except TransformError:
        raise
    except Exception as error:
        raise TransformError(
            f"{name}, {reference}, failed: {type(error).__name__}: {first_line(error)}",
            remedy="Correct the function; nothing was written.",
        ) from error


def open_static_tables(
    session: SparkSession, tables: Mapping[str, StaticTable], settings: Settings
) -> dict[str, DataFrame]:
    """Open the static tables, and make each known to SQL by its name."""
    opened = {name: _open_static(session, name, tables[name], settings) for name in tables}
    for name, rows in opened.items():
        rows.createOrReplaceTempView(name)
    return opened


def _open_static(
    session: SparkSession, name: str, table: StaticTable, settings: Settings
) -> DataFrame:
    try:
        if isinstance(table, StaticDelta):
            return session.read.format("delta").load(settings.locate_url(table.table))
        reader = session.read.format(table.format).schema(table.file_schema)
        return reader.options(**table.options).load(settings.locate_url(table.path))
    except (AnalysisException, ParseException) as error:
        raise TransformError(
            f"The static table {name} cannot be read: {first_line(error)}",
            remedy=f"Correct tables.{name} in the spec, or create the table.",
        ) from error
