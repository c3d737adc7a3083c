"""Waiting for a slice's turn."""

import asyncio

from upath import UPath

from tidegate.airflow.backfill.turn import TurnTrigger
from tidegate.core.backfill.lanes import Lanes


def test_it_is_the_same_after_a_stay_in_the_database():
    trigger = TurnTrigger(folder="/f", lanes=3, number=7, poll_seconds=0.5)
    path, arguments = trigger.serialize()
    assert path == f"{TurnTrigger.__module__}.{TurnTrigger.__name__}"
    assert TurnTrigger(**arguments).serialize() == (path, arguments)


def test_it_fires_when_a_lane_is_free(tmp_path):
    lanes = Lanes(UPath(tmp_path), 1)
    trigger = TurnTrigger(folder=str(tmp_path), lanes=1, number=1, poll_seconds=0.01)

    async def scenario():
        with lanes.enter(0, 30) as is_let_in:
            assert is_let_in
            waiting = asyncio.ensure_future(anext(trigger.run()))
            done, _ = await asyncio.wait([waiting], timeout=0.2)
            assert not done
        return (await asyncio.wait_for(waiting, 5)).payload

    assert asyncio.run(scenario()) == {"reason": "a lane is free"}


def test_a_slice_that_nobody_begins_keeps_no_lane_for_ever(tmp_path):
    trigger = TurnTrigger(folder=str(tmp_path), lanes=1, number=1, poll_seconds=0.01)

    async def scenario():
        return (await asyncio.wait_for(anext(trigger.run()), 10)).payload

    assert asyncio.run(scenario()) == {"reason": "a lane is free"}
