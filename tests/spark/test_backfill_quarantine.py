"""A backfill and what was put aside: each row is in the table or in the quarantine, and once."""

import json

import pytest

from tests.spark.test_backfill import begin, land
from tidegate.core.backfill.book import Backfills
from tidegate.core.backfill.verification import verify
from tidegate.core.errors import BackfillError, ReplayError
from tidegate.core.lease import LeaseFolder, hold_lease
from tidegate.core.quarantine import Choice
from tidegate.core.replay import Replays
from tidegate.spark.backfill import run_backfill
from tidegate.spark.replay import replay_quarantine

__all__ = ["begin", "land"]

FILES = {
    "type": "files",
    "path": "landing",
    "format": "json",
    "schema": "id long, n long",
    "max_files_per_trigger": 10,
}
KEYED = {"mode": "upsert", "keys": ["id"], "sequence": ["n"]}


def rules(most):
    return [{"name": "small", "check": f"id % 10 < {most}", "on_fail": "quarantine"}]


@pytest.fixture
def look(rows_of):
    """Read which rows are in the table, and which are put aside."""

    def look():
        rows = [row for (row,) in rows_of("quarantine/p", "row")]
        return [id_ for (id_,) in rows_of("out", "id")], sorted(json.loads(r)["id"] for r in rows)

    return look


def test_what_a_backfill_has_written_is_not_taken_up_once_more(
    runs, pipeline_of, settings, land, begin, look
):
    strict, loose = (pipeline_of(FILES, expect=rules(most)) for most in (8, 10))
    land(0, 1)
    runs.run(strict)
    assert look()[1] == [8, 9, 18, 19]
    replay = Replays(loose, settings).begin(Choice())
    backfill = begin(loose, mode="replace", glob="*.json")
    run_backfill(loose, settings, backfill.id)
    assert look() == ([*range(20)], [])
    replay_quarantine(loose, settings, replay.id)
    assert look() == ([*range(20)], [])
    assert not (Backfills(loose, settings).folder_of(backfill.id) / "staged").exists()


def test_rows_that_are_taken_up_before_the_swap_are_where_the_slices_put_them(
    runs, pipeline_of, settings, land, begin, look
):
    strict, loose = (pipeline_of(FILES, expect=rules(most)) for most in (8, 10))
    land(0, 1)
    runs.run(strict)
    backfill = begin(strict, mode="replace", glob="*.json", slices=2)
    run_backfill(strict, settings, backfill.id, [0, 1])
    assert look()[1] == [8, 9, 18, 19]  # as the live run left it
    replay_quarantine(loose, settings, Replays(loose, settings).begin(Choice()).id)
    assert look() == ([*range(20)], [])
    with pytest.raises(BackfillError, match="changed since"):
        run_backfill(loose, settings, backfill.id)
    run_backfill(strict, settings, backfill.id)
    aside = [8, 9, 18, 19]
    assert look() == ([n for n in range(20) if n not in aside], aside)
    assert verify(Backfills(strict, settings), backfill).problems == ()


def test_slices_that_follow_a_replay_lose_nothing_to_it(
    runs, pipeline_of, settings, land, begin, look, rows_of
):
    strict, loose = (pipeline_of(FILES, expect=rules(most), sink=KEYED) for most in (8, 10))
    land(0, 1)
    runs.run(strict)
    backfill = begin(strict, mode="merge", glob="*.json", slices=2)
    run_backfill(strict, settings, backfill.id, [0])
    replay = Replays(loose, settings).begin(Choice(run_id=backfill.id))
    run_backfill(strict, settings, backfill.id, [1])
    assert rows_of("quarantine/p", "run_id", "batch_id") == [
        (backfill.id, 0),
        (backfill.id, 0),
        (backfill.id, 1),
        (backfill.id, 1),
    ]
    replay_quarantine(loose, settings, replay.id)
    held, aside = look()
    assert (held, aside) == ([n for n in range(20) if n not in aside], [18, 19])


def test_two_backfills_of_one_range_leave_what_they_put_aside_once(
    runs, pipeline_of, settings, land, begin, look
):
    pipeline = pipeline_of(FILES, expect=rules(8))
    land(0)
    runs.run(pipeline)
    one, other = (begin(pipeline, mode="replace", glob="*.json") for _ in range(2))
    run_backfill(pipeline, settings, one.id, [0])
    run_backfill(pipeline, settings, other.id)
    run_backfill(pipeline, settings, one.id)
    assert look() == ([*range(8)], [8, 9])


def test_a_replay_and_a_backfill_are_not_at_work_at_once(
    runs, pipeline_of, settings, land, begin, look
):
    pipeline = pipeline_of(FILES, expect=rules(8))
    land(0)
    runs.run(pipeline)
    backfill = begin(pipeline, mode="replace", glob="*.json")
    replays = Replays(pipeline, settings)
    with (
        hold_lease(replays.lease, "a replay", seconds=30),
        pytest.raises(BackfillError, match=r"a replay .* takes up right now"),
    ):
        run_backfill(pipeline, settings, backfill.id)
    folder = LeaseFolder(Backfills(pipeline, settings).folder_of(backfill.id) / "lease" / "0")
    replay = replays.begin(Choice())
    with hold_lease(folder, "a slice", seconds=30), pytest.raises(ReplayError, match="a slice"):
        replay_quarantine(pipeline, settings, replay.id)
    replay_quarantine(pipeline, settings, replay.id)
    run_backfill(pipeline, settings, backfill.id)
    assert look() == ([*range(8)], [8, 9])
