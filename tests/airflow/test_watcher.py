"""The watcher: an event for each look that finds something new, and none for anything else."""

import asyncio

import pytest
from airflow.sdk import DAG, Asset
from airflow.serialization.serialized_objects import DagSerialization

from tidegate.airflow.watcher import CommitTrigger, commit_watcher

OTHER = "11111111-2222-3333-4444-555555555555"


class Store:
    """What Airflow keeps for an asset, as the triggerer hands it to a trigger."""

    def __init__(self, **kept):
        self.kept = kept
        self.was_noted = asyncio.Event()

    async def aget(self, key, default=None):
        return self.kept.get(key, default)

    async def aset(self, key, value):
        self.kept[key] = value
        self.was_noted.set()


def watch(checkpoint, store=None):
    trigger = CommitTrigger(checkpoint=str(checkpoint.path), poll_seconds=0.01)
    trigger.asset_state_store = store
    return trigger


async def next_event(events, seconds=10):
    return (await asyncio.wait_for(anext(events), timeout=seconds)).payload


def play(scenario):
    return asyncio.run(asyncio.wait_for(scenario(), timeout=30))


def test_it_is_the_same_after_a_stay_in_the_database():
    path, arguments = CommitTrigger(checkpoint="s3://lake/c", poll_seconds=2.5).serialize()
    assert path == f"{CommitTrigger.__module__}.{CommitTrigger.__name__}"
    assert CommitTrigger(**arguments).serialize() == (path, arguments)


def test_what_is_committed_after_its_first_look_is_told(checkpoint):
    checkpoint.batches(2)
    store = Store()

    async def scenario():
        events = watch(checkpoint, store).run()
        waiting = asyncio.ensure_future(next_event(events))
        await store.was_noted.wait()
        assert not waiting.done()
        checkpoint.offset(2)
        checkpoint.commit(2)
        return await waiting

    told = play(scenario)
    assert (told["committed_batch"], told["batches_since"]) == (2, 2)
    assert told["query_id"] == checkpoint.query_id
    assert told["offsets"] == {"0": {"logOffset": 2}}
    assert not told["is_replaced"]


def test_the_first_commit_of_all_is_told_to_who_was_there_before_it(checkpoint):
    store = Store()

    async def scenario():
        events = watch(checkpoint, store).run()
        waiting = asyncio.ensure_future(next_event(events))
        await store.was_noted.wait()
        checkpoint.metadata().offset(0).commit(0)
        return await waiting

    told = play(scenario)
    assert (told["committed_batch"], told["batches_since"], told["is_replaced"]) == (0, 0, False)


def test_what_follows_a_deleted_checkpoint_is_told_as_another_query_s(checkpoint):
    kept = {"query_id": checkpoint.query_id, "committed_batch": 7}
    store = Store(tidegate_cursor=kept)

    async def scenario():
        trigger = watch(checkpoint, store)
        waiting = asyncio.ensure_future(next_event(trigger.run()))
        await asyncio.sleep(0.1)  # some looks at nothing: none of them may make it forget
        assert store.kept["tidegate_cursor"] == kept
        checkpoint.metadata(OTHER).offset(0).commit(0)
        return await waiting

    told = play(scenario)
    assert (told["committed_batch"], told["is_replaced"]) == (0, True)


def test_a_triggerer_that_died_meanwhile_forgets_nothing(checkpoint):
    checkpoint.batches(5)
    kept = {"query_id": checkpoint.query_id, "committed_batch": 1}
    told = play(lambda: next_event(watch(checkpoint, Store(tidegate_cursor=kept)).run()))
    assert (told["batches_since"], told["committed_batch"]) == (2, 4)


def test_a_replaced_checkpoint_is_told_although_its_batch_is_the_same(checkpoint):
    checkpoint.batches(3).metadata(OTHER)
    kept = {"query_id": checkpoint.query_id, "committed_batch": 2}
    told = play(lambda: next_event(watch(checkpoint, Store(tidegate_cursor=kept)).run()))
    assert (told["is_replaced"], told["query_id"], told["batches_since"]) == (True, OTHER, None)


@pytest.mark.parametrize("damage", ["pending", "corrupt", "set back", "gone"])
def test_nothing_else_is_told(checkpoint, damage):
    checkpoint.batches(3)
    kept = {"query_id": checkpoint.query_id, "committed_batch": 2}
    match damage:
        case "pending":
            checkpoint.offset(3)
        case "corrupt":
            checkpoint.offset(3).write("commits/3", "")
        case "set back":
            checkpoint.delete("commits/2", "offsets/2")
        case "gone":
            checkpoint.path.fs.rm(checkpoint.path.path, recursive=True)

    async def scenario():
        with pytest.raises(TimeoutError):
            await next_event(watch(checkpoint, Store(tidegate_cursor=kept)).run(), seconds=0.3)

    play(scenario)


def test_a_dag_may_be_scheduled_by_it(database):
    asset = Asset("orders_lake", watchers=[commit_watcher("commits", "s3://lake/checkpoint")])
    with DAG("after_commits", schedule=[asset]) as dag:
        pass
    assert "tidegate.airflow.watcher.CommitTrigger" in str(DagSerialization.to_dict(dag))
