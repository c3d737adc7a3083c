"""What is noted of a task that failed."""

from types import SimpleNamespace

import pytest


@pytest.fixture
def describe():
    from tidegate.airflow.failure import describe_failure

    task = SimpleNamespace(run_id="run 1", task_id="plan", log_url="http://airflow/log")
    return lambda **context: describe_failure({"ti": task, **context})


def test_a_failure_is_what_was_raised_and_where(describe):
    failure = describe(exception=ValueError("no landing zone"))
    assert (failure.reason, failure.run_id, failure.task) == ("no landing zone", "run 1", "plan")
    assert failure.link == "http://airflow/log"


def test_a_task_that_was_killed_leaves_no_word(describe):
    assert describe().reason == "the task ended without a word"


def test_what_airflow_keeps_out_of_its_logs_is_kept_out_of_messages(describe):
    from airflow.sdk.log import mask_secret

    mask_secret("hunter2-secret")
    reason = describe(exception=ValueError("login with hunter2-secret failed")).reason
    assert reason == "login with *** failed"
