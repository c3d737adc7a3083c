"""The trigger: what it writes down, and when it fires."""

import asyncio

import pytest

from tidegate.airflow.trigger import CheckpointTrigger
from tidegate.core.condition import BatchAtLeast, Covers, NothingPending, dump_conditions
from tidegate.core.target import KafkaTarget


def watch(checkpoint, *conditions, poll_seconds=0.01) -> CheckpointTrigger:
    return CheckpointTrigger(
        checkpoint=str(checkpoint.path),
        conditions=dump_conditions(list(conditions)),
        poll_seconds=poll_seconds,
    )


def test_it_is_the_same_after_a_stay_in_the_database(checkpoint):
    target = KafkaTarget({"orders": {"0": 7}}, source="1")
    trigger = watch(checkpoint, Covers(target), BatchAtLeast(3), poll_seconds=2.5)
    path, arguments = trigger.serialize()
    assert path == f"{CheckpointTrigger.__module__}.{CheckpointTrigger.__name__}"
    assert CheckpointTrigger(**arguments).serialize() == (path, arguments)


def test_it_refuses_arguments_it_does_not_know():
    with pytest.raises(TypeError):
        CheckpointTrigger(checkpoint="c", conditions=[], poll_secs=1)


async def _first(trigger) -> dict:
    return (await anext(trigger.run())).payload


def test_it_fires_when_the_commit_is_there(checkpoint):
    checkpoint.offset(0).commit(0).offset(1)

    async def scenario() -> dict:
        waiting = asyncio.create_task(_first(watch(checkpoint, NothingPending())))
        done, _ = await asyncio.wait([waiting], timeout=0.2)
        assert not done
        checkpoint.commit(1)
        return await asyncio.wait_for(waiting, timeout=10)

    assert asyncio.run(scenario())["verdict"] == "reached"


def test_it_fires_with_the_reason_when_the_checkpoint_is_broken(checkpoint):
    checkpoint.offset(0).commit(0)
    (checkpoint.path / "commits" / "0").write_text("")
    event = asyncio.run(_first(watch(checkpoint, NothingPending())))
    assert event["verdict"] == "failed"
    assert "commits/0 is corrupt" in event["reason"]


def test_it_waits_out_a_store_that_is_away(checkpoint, monkeypatch):
    from tidegate.airflow import trigger as module

    checkpoint.offset(0).commit(0)
    answers = iter([OSError("away"), OSError("away"), None])
    judge = module.judge

    def judge_or_fail(*arguments):
        error = next(answers)
        if error:
            raise error
        return judge(*arguments)

    monkeypatch.setattr(module, "judge", judge_or_fail)
    assert asyncio.run(_first(watch(checkpoint, NothingPending())))["verdict"] == "reached"
