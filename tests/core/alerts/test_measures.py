"""What is measured of a pipeline, from the files that its runs leave behind."""

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.core.alerts.conftest import NOW, ago, make_pipeline
from tidegate.core.alerts import measures
from tidegate.core.alerts.failure import Failure, note_failure
from tidegate.core.alerts.measures import Measurement
from tidegate.core.alerts.rules import Rules, find_interval
from tidegate.core.errors import SourceAwayError
from tidegate.core.ledger import Attempt, Decision, Outcome, Stop
from tidegate.core.spec.alerts import Rule


@pytest.fixture
def take(settings):
    def measurement(**parts):
        pipeline = make_pipeline(**parts)
        rules = Rules.of(pipeline.alerts, find_interval(pipeline, {}))
        return Measurement(pipeline, settings, rules, now=NOW)

    return measurement


@pytest.fixture
def measure(take):
    return lambda **parts: take(**parts).measure()


@pytest.fixture
def note(settings):
    def write(run_id, at, reason="The task failed."):
        failure = Failure(reason, at, run_id, "confirm", "http://airflow/log")
        note_failure(settings.state_of("p"), failure)

    return write


def test_of_a_pipeline_that_never_ran_nothing_is_told(measure, history):
    assert measure() == measures.Measures()


def test_a_healthy_pipeline_is_quiet_and_its_landing_zone_is_not_listed(
    measure, history, monkeypatch
):
    history.run("run 1", ago(minutes=30))

    def refuse(*args, **kwargs):
        raise AssertionError("it was listed")

    monkeypatch.setattr("tidegate.core.ends.files.list_landing", refuse)
    monkeypatch.setattr("tidegate.core.work.files.list_landing", refuse)
    found = measure()
    assert (found.failure, found.waiting.is_any, dict(found.unknown)) == (None, False, {})


@pytest.mark.parametrize(("minutes", "is_told"), [(1, False), (3, True)])
def test_a_failed_driver_is_told_once_no_try_can_be_on_its_way(measure, history, minutes, is_told):
    at = ago(minutes=minutes)
    history.plan("run 1", at).attempt("run 1", Outcome.FAILED, at, "no memory")
    found = measure(retry_delay="1m")
    if is_told:
        assert (found.failure.reason, found.failure.run_id) == ("no memory", "run 1")
    else:
        assert found.failure is None
        assert "may be tried again: no memory" in found.unknown[Rule.FAILED_RUN]


def test_a_failed_driver_is_told_at_once_where_the_task_failed_for_good(measure, history, note):
    at = ago(seconds=2)
    history.plan("run 1", at).attempt("run 1", Outcome.FAILED, at, "no memory")
    note("run 1", ago(seconds=1))
    failure = measure().failure
    assert (failure.reason, failure.link) == ("no memory", "http://airflow/log")


def test_a_blocked_run_is_told_in_the_words_of_plan(measure, history):
    history.plan("run 1", ago(minutes=5), Decision.BLOCKED, "The topic is gone.")
    assert measure().failure.reason == "The topic is gone."


def test_while_a_run_is_under_way_nobody_can_say(measure, history, note):
    history.plan("run 0", ago(hours=1)).attempt("run 0", Outcome.FAILED, ago(hours=1), "x")
    history.plan("run 1", ago(minutes=5)).attempt("run 1", Outcome.RUNNING, ago(minutes=4))
    note("run 0", ago(minutes=59))
    found = measure()
    assert found.failure is None
    assert Rule.FAILED_RUN in found.unknown


def test_a_task_that_failed_before_anything_was_written_is_known_by_its_note(
    measure, history, note
):
    history.run("run 1", ago(minutes=30))
    note("run 2", ago(minutes=5), "plan crashed")
    assert measure().failure.reason == "plan crashed"
    history.plan("run 3", ago(minutes=1), Decision.IDLE)
    assert measure().failure is None


def test_a_run_that_its_budget_stopped_did_not_fail(measure, history):
    at = ago(minutes=30)
    history.plan("run 1", at)
    stopped = Attempt(Outcome.SUCCEEDED, at, at, stop=Stop("its budget is spent", 0))
    history.ledger.record_attempt("run 1", stopped)
    assert measure().failure is None


def test_a_ledger_that_is_broken_is_a_failure(measure, history):
    history.run("run 1", ago(minutes=30))
    (history.ledger.folder / "latest.json").write_text("{")
    assert "latest.json" in measure().failure.reason


def test_the_newest_run_that_committed_is_added_up(measure, history):
    history.run("run 1", ago(hours=3), state_rows=1000)
    history.plan("run 2", ago(hours=1)).commit("run 2", ago(hours=1), rows=60, aside=3, late_rows=2)
    history.commit("run 2", ago(minutes=59), rows=40, aside=1, late_rows=1, state_rows=1500)
    history.attempt("run 2", Outcome.SUCCEEDED, ago(minutes=59))
    history.plan("run 3", ago(minutes=1), Decision.IDLE)
    newest = measure().newest
    assert (newest.run_id, newest.input_rows, newest.quarantined) == ("run 2", 100, 4)
    assert (newest.late_rows, newest.state_rows, newest.state_rows_before) == (3, 1500, 1000)


def test_of_a_long_run_the_newest_batches_count(measure, history, monkeypatch):
    monkeypatch.setattr(measures, "_MOST_BATCHES", 2)
    history.plan("run 1", ago(hours=1))
    for _ in range(4):
        history.commit("run 1", ago(minutes=59), rows=10, state_rows=7)
    newest = measure().newest
    assert (newest.input_rows, newest.state_rows_before) == (20, None)


def test_files_wait_since_they_came_or_since_the_last_commit(measure, history):
    history.run("run 1", ago(hours=5))
    file = history.landing / "new.txt"
    file.write_text("x")
    os.utime(file, (NOW.timestamp() - 3600, NOW.timestamp() - 3600))
    waiting = measure().waiting
    assert (waiting.is_any, waiting.seconds) == (True, 3600)
    os.utime(file, (NOW.timestamp() - 86400, NOW.timestamp() - 86400))
    found = measure()
    assert found.waiting.seconds == found.silent_seconds == 5 * 3600


def test_versions_of_a_table_wait_and_are_kept_for_so_long(
    measure, history, settings, table_at, checkpoint_of
):
    history.run("run 1", ago(days=29))
    table = table_at(Path(settings.data) / "in").append().append().append()
    table.date(1, NOW - timedelta(hours=9)).date(2, NOW - timedelta(hours=8))
    position = checkpoint_of("p").delta(1) | {"reservoirId": table.id}
    checkpoint_of("p").batch(0, position)
    source = {"type": "delta", "table": "in", "max_files_per_trigger": 1}
    waiting = measure(source=source).waiting
    assert (waiting.is_any, waiting.seconds) == (True, 9 * 3600)
    assert waiting.retention_seconds == 30 * 86400


def test_a_source_that_cannot_be_looked_at_leaves_its_rules_undecided(measure, history):
    history.run("run 1", ago(hours=5))
    history.landing.rmdir()
    found = measure()
    assert {Rule.LAG_TIME, Rule.LAG_RECORDS, Rule.NO_COMMIT_FOR} <= set(found.unknown)
    assert "does not exist" in found.unknown[Rule.LAG_TIME]
    assert found.newest.input_rows == 100


def test_a_broker_that_is_away_is_waited_for_once(take, history, monkeypatch):
    asked = []

    def be_away(*args):
        asked.append(args)
        raise SourceAwayError("No broker answers.")

    monkeypatch.setattr("tidegate.core.alerts.waiting.measure_lag", be_away)
    history.run("run 1", ago(minutes=1))
    source = {
        "type": "kafka",
        "topics": ["t"],
        "max_offsets_per_trigger": 1,
        "value": {"format": "string"},
    }
    taking = take(source=source)
    assert "No broker" in taking.measure().unknown[Rule.LAG_TIME]
    assert replace(taking).measure().unknown[Rule.LAG_TIME] == "no broker answers"
    assert len(asked) == 1


def test_a_look_at_the_run_alone_leaves_all_else_undecided(take, history):
    history.run("run 1", ago(minutes=1), late_rows=5)
    found = take().measure_run()
    assert set(found.unknown) == set(Rule) - {Rule.FAILED_RUN}
