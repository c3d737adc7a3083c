"""Tasks that must not be tried again, since what they did outside of Spark would be done twice."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

# Spark names the thread of a task by it, with the numbers of the attempts at it and at its stage.
_TASK = r"task \d+\.\d+ in stage \d+\.\d+ "
_FIRST = r"task \d+\.0 in stage \d+\.0 "
_REFUSAL = "tidegate: Spark tries a task again that may have sent rows; the batch is begun anew"


def refuse_second_attempts(rows: DataFrame) -> DataFrame:
    """Stop where Spark tries a task again without having counted a failure.

    It does so after an executor is lost, whatever spark.task.maxFailures says. No column tells the
    attempt, and Python could only be asked by sending it every row.
    """
    thread = F.reflect(F.lit("java.lang.Thread"), F.lit("currentThread"))
    return rows.where(F.when(is_second_attempt(thread), F.raise_error(F.lit(_REFUSAL))).isNull())


def is_second_attempt(thread: Column) -> Column:
    """Whether a thread, by its name, is at a second or later attempt at a task."""
    return thread.rlike(_TASK) & ~thread.rlike(_FIRST)
