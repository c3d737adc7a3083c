"""The sensor on its own, as people with their own Spark jobs use it."""

from datetime import UTC, datetime, timedelta

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from tidegate.airflow import CheckpointSensor
from tidegate.core.target import BatchTarget, DeltaTarget, FilesTarget, KafkaTarget

EVENTS = {"outlet_events": {}}


def sense(checkpoint, **conditions) -> CheckpointSensor:
    return CheckpointSensor(task_id="wait", checkpoint=str(checkpoint.path), **conditions)


@pytest.fixture
def kafka(checkpoint):
    """A query over Kafka with batch 1 committed and batch 2 pending."""
    return (
        checkpoint.offset(0, {"orders": {"0": 5}})
        .commit(0)
        .offset(1, {"orders": {"0": 9}})
        .commit(1)
        .offset(2, {"orders": {"0": 20}})
    )


@pytest.mark.parametrize(
    ("conditions", "is_met"),
    [
        ({"covers": KafkaTarget({"orders": {"0": 9}})}, True),
        ({"covers": KafkaTarget({"orders": {"0": 10}})}, False),
        ({"covers": {"kind": "kafka", "offsets": {"orders": {"0": 9}}}}, True),
        ({"covers": BatchTarget(1)}, True),
        ({"batch_at_least": 1}, True),
        ({"batch_at_least": "2"}, False),
        ({"nothing_pending": True}, False),
        ({"committed_within": timedelta(hours=1)}, True),
        ({"committed_within": timedelta(seconds=-1)}, False),
        ({"watermark_at_least": datetime(1970, 1, 1, tzinfo=UTC)}, True),
        ({"watermark_at_least": "2099-01-01T00:00:00+00:00"}, False),
        ({"batch_at_least": 1, "nothing_pending": True}, False),
    ],
)
def test_each_condition_is_judged_by_the_commit_log(kafka, conditions, is_met):
    sensor = sense(kafka, **conditions)
    assert sensor.poke({}) is is_met
    if is_met:
        assert sensor.execute(EVENTS)["committed_batch"] == 1
    else:
        with pytest.raises(TaskDeferred) as deferred:
            sensor.execute(EVENTS)
        assert deferred.value.trigger.conditions
        assert deferred.value.method_name == "execute_complete"


def test_it_looks_for_itself_after_the_trigger_fired(kafka):
    sensor = sense(kafka, nothing_pending=True)
    event = {"verdict": "reached", "reason": "so it says"}
    with pytest.raises(TaskDeferred):
        sensor.execute_complete(EVENTS, event)
    kafka.commit(2)
    assert sensor.execute_complete(EVENTS, event)["committed_batch"] == 2


def test_a_broken_checkpoint_fails_at_once_in_words(kafka):
    (kafka.path / "offsets" / "2").write_text("v1")
    with pytest.raises(AirflowFailException, match=r"offsets/2 is corrupt.*restore"):
        sense(kafka, batch_at_least=1).execute(EVENTS)


def test_a_checkpoint_that_is_not_there_yet_is_waited_for(tmp_path, checkpoint):
    sensor = CheckpointSensor(task_id="wait", checkpoint=str(tmp_path / "no"), batch_at_least=0)
    with pytest.raises(TaskDeferred):
        sensor.execute(EVENTS)


def test_a_sensor_that_waits_for_nothing_is_refused():
    with pytest.raises(ValueError, match="waits for nothing"):
        CheckpointSensor(task_id="wait", checkpoint="c")


def test_it_pokes_in_its_slot_if_asked_to(kafka):
    sensor = sense(kafka, batch_at_least=1, deferrable=False)
    assert sensor.execute(EVENTS)["committed_batch"] == 1


def test_the_deferral_ends_with_the_timeout(kafka):
    with pytest.raises(TaskDeferred) as deferred:
        sense(kafka, nothing_pending=True, timeout=77, poke_interval=3).execute(EVENTS)
    assert deferred.value.timeout == timedelta(seconds=77)
    assert deferred.value.trigger.poll_seconds == 3


@pytest.mark.parametrize("target", [DeltaTarget(1), FilesTarget(("/a",)), KafkaTarget({}, "5")])
def test_a_target_that_the_checkpoint_can_never_cover_fails_at_once(kafka, target):
    with pytest.raises(AirflowFailException, match=r"of kind kafka|has no source '5'"):
        sense(kafka, covers=target).execute(EVENTS)


def test_a_moment_without_a_zone_is_utc(checkpoint, monkeypatch):
    import time

    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        sensor = sense(checkpoint, watermark_at_least="1970-01-01T00:00:01")
        assert [condition.watermark_ms for condition in sensor.list_conditions()] == [1000]
    finally:
        monkeypatch.undo()
        time.tzset()
