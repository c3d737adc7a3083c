"""Which attempt at a task a thread is at, by the name that Spark gives it."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812

from tidegate.spark.sinks.attempt import is_second_attempt, refuse_second_attempts

NAME = "Thread[Executor task launch worker for task {}.{} in stage {}.{} (TID 20),5,main]"


def test_a_second_attempt_at_a_task_or_at_its_stage_is_known(spark):
    cases = {
        NAME.format(10, 0, 11, 0): False,
        NAME.format(10, 1, 11, 0): True,
        NAME.format(10, 0, 11, 10): True,
        "Thread[main,5,main]": False,
    }
    named = spark.createDataFrame([(name,) for name in cases], "thread string")
    found = named.select(is_second_attempt(F.col("thread"))).collect()
    assert [row[0] for row in found] == list(cases.values())


def test_a_task_s_own_thread_has_such_a_name(spark):
    thread = F.reflect(F.lit("java.lang.Thread"), F.lit("currentThread"))
    (named,) = spark.range(1).select(thread).first()
    assert ".0 in stage " in named
    assert refuse_second_attempts(spark.range(3)).count() == 3


def test_a_second_attempt_stops(spark, monkeypatch):
    monkeypatch.setattr("tidegate.spark.sinks.attempt._FIRST", "no such name")
    with pytest.raises(PySparkException, match="tries a task again that may have sent rows"):
        refuse_second_attempts(spark.range(3)).count()
