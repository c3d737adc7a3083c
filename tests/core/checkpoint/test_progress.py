"""Deciding how far a query got: every state, and every damage that files can show."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.core.checkpoint import log
from tidegate.core.checkpoint.position import SourceKind
from tidegate.core.checkpoint.progress import UNREADABLE, Progress, State, read_progress


@pytest.mark.parametrize(
    "begin",
    [
        lambda checkpoint: checkpoint,
        lambda checkpoint: checkpoint.metadata(),
        lambda checkpoint: checkpoint.metadata().log_files(0, "/landing/a.json"),
        lambda checkpoint: checkpoint.metadata().litter("offsets", 0),
    ],
    ids=["no folder", "metadata", "killed after the file log", "killed while writing offsets"],
)
def test_a_query_without_a_planned_batch_never_ran(checkpoint, begin):
    progress = read_progress(begin(checkpoint).path)
    assert progress.state is State.NEVER_RAN
    assert (progress.committed_batch, progress.planned_batch, progress.sources) == (None, None, ())


def test_a_planned_and_committed_batch_is_committed(checkpoint):
    progress = read_progress(checkpoint.batch(0).batch(1).path)
    assert progress.state is State.COMMITTED
    assert (progress.committed_batch, progress.planned_batch) == (1, 1)
    assert progress.query_id == checkpoint.query_id
    assert progress.problem is None


def test_a_first_batch_without_a_commit_is_pending(checkpoint):
    progress = read_progress(checkpoint.offset(0).path)
    assert (progress.state, progress.committed_batch) == (State.PENDING, None)


def test_pending_batch_is_not_progress(checkpoint):
    progress = read_progress(checkpoint.batch(0).offset(1).path)
    assert progress.state is State.PENDING
    assert (progress.committed_batch, progress.planned_batch) == (0, 1)
    assert progress.sources[0].committed == {"logOffset": 0}
    assert progress.sources[0].planned == {"logOffset": 1}


@pytest.mark.parametrize(
    ("gone", "committed"),
    [(["commits/3"], 2), (["commits/2", "commits/3"], 1), (["commits"], None)],
)
def test_lost_commits_are_replayed_so_they_are_pending(checkpoint, gone, committed):
    progress = read_progress(checkpoint.batches(4).delete(*gone).path)
    assert (progress.state, progress.committed_batch) == (State.PENDING, committed)
    assert progress.planned_batch == 3


@pytest.mark.parametrize("gone", [["offsets/0"], ["commits/0"], ["offsets/1", "commits/1"]])
def test_an_older_gap_is_silent(checkpoint, gone):
    progress = read_progress(checkpoint.batches(4).delete(*gone).path)
    assert progress.state is State.COMMITTED
    assert (progress.problem, progress.obstacle) == (None, None)


@pytest.mark.parametrize(
    ("gone", "fact", "remedy"),
    [
        (["offsets/3"], "batch 3 is committed but the newest offsets are of 2", "Do not restart"),
        (["offsets"], "batch 3 is committed but offsets/ is empty", "Do not restart"),
        (["metadata"], "metadata is corrupt: it is missing", "Do not restart"),
        (["offsets/2", "commits/3"], "offsets/2 is missing", "Restore it from a backup"),
        (
            ["offsets/1", "commits/2", "commits/3"],
            "offsets/1 is missing while its batch is committed",
            "Restore it from a backup",
        ),
    ],
)
def test_lost_files_are_corruption_told_with_its_remedy(local_checkpoint, gone, fact, remedy):
    progress = read_progress(local_checkpoint.batches(4).delete(*gone).path)
    assert progress.state is State.CORRUPT
    assert fact in progress.problem
    assert remedy in progress.problem


@pytest.mark.parametrize(
    ("gone", "state", "committed"),
    [
        (["offsets/2"], State.COMMITTED, 3),
        (["offsets/2", "commits/2"], State.COMMITTED, 3),
        (["offsets/2", "commits/2", "commits/3"], State.PENDING, 1),
        (["offsets/2", "commits"], State.PENDING, None),
    ],
)
def test_a_lost_start_of_the_planned_batch_is_an_obstacle_and_no_corruption(
    local_checkpoint, gone, state, committed
):
    progress = read_progress(local_checkpoint.batches(4).delete(*gone).path)
    assert (progress.state, progress.committed_batch, progress.problem) == (state, committed, None)
    assert progress.is_readable
    assert progress.obstacle == (
        f"{local_checkpoint.path}/offsets/2 is missing, and Spark would fail with "
        "'batch 2 doesn't exist'. Restore it from a backup."
    )


@pytest.mark.parametrize("batches", [0, 1, 2, 4])
def test_a_query_that_could_start_again_has_no_obstacle(checkpoint, batches):
    assert read_progress(checkpoint.metadata().batches(batches).path).obstacle is None
    assert read_progress(checkpoint.offset(batches).path).obstacle is None


@pytest.mark.parametrize(
    ("name", "size", "state"),
    [
        ("commits/1", 0, State.CORRUPT),
        ("commits/1", 10, State.CORRUPT),
        ("commits/1", 2, State.COMMITTED),
        ("offsets/1", 0, State.CORRUPT),
        ("offsets/1", 1, State.CORRUPT),
        ("offsets/1", 2, State.CORRUPT),
        ("offsets/1", 40, State.CORRUPT),
        ("offsets/1", -3, State.CORRUPT),
        ("metadata", 0, State.CORRUPT),
    ],
)
def test_a_truncated_file_is_judged_by_what_is_left(local_checkpoint, name, size, state):
    progress = read_progress(local_checkpoint.batch(0).batch(1).cut(name, size).path)
    assert progress.state is state
    assert state is State.COMMITTED or f"/{name}" in progress.problem


@pytest.mark.parametrize("name", ["offsets/0", "commits/0"])
def test_a_newer_format_is_a_state_with_its_version_named(checkpoint, name):
    checkpoint.batch(0).write(name, "v9\n{}\n{}")
    progress = read_progress(checkpoint.path)
    assert progress.state is State.UNSUPPORTED
    assert f"{name} has version 9" in progress.problem


@pytest.mark.parametrize("state", State)
def test_only_broken_and_newer_checkpoints_are_unreadable(state):
    assert Progress(state).is_readable is (state not in UNREADABLE)
    assert {State.CORRUPT, State.UNSUPPORTED} == UNREADABLE


def test_a_source_line_lost_from_a_pending_batch_is_corrupt(checkpoint):
    checkpoint.batch(0, {"logOffset": 0}, {"logOffset": 0}).offset(1, {"logOffset": 1})
    progress = read_progress(checkpoint.path)
    assert progress.state is State.CORRUPT
    assert "offsets/1 is corrupt: source 1 is missing in it" in progress.problem


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"logOffset": 8}, {"logOffset": 0}),
        ({"orders": {"0": 80, "1": 5}}, {"orders": {"0": 10, "1": 9}}),
        ({"reservoirId": "a", "reservoirVersion": 9}, {"reservoirId": "a", "reservoirVersion": 1}),
    ],
    ids=["files", "kafka", "delta"],
)
def test_a_pending_position_behind_the_committed_one_is_corrupt(local_checkpoint, before, after):
    progress = read_progress(local_checkpoint.batch(0, before).offset(1, after).path)
    assert progress.state is State.CORRUPT
    assert "offsets/1 is corrupt: source 0 goes back behind what is committed" in progress.problem


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_watermark_is_the_one_that_the_commit_left(checkpoint, version):
    checkpoint.offset(0, watermark_ms=5).commit(0, version=version, watermark_ms=9)
    assert read_progress(checkpoint.offset(1, watermark_ms=99).path).watermark_ms == 9


def test_the_watermark_of_a_bare_commit_is_the_one_that_its_batch_had(checkpoint):
    checkpoint.offset(0, watermark_ms=5).write("commits/0", "v1")
    assert read_progress(checkpoint.path).watermark_ms == 5


def test_a_query_without_a_commit_has_no_watermark(checkpoint):
    assert read_progress(checkpoint.offset(0, watermark_ms=5).path).watermark_ms is None


def test_sources_are_told_in_plan_order_with_their_kinds(checkpoint):
    positions = [{"logOffset": 1}, {"orders": {"0": 2}}, checkpoint.delta(3), 4, {"x": "y"}]
    progress = read_progress(checkpoint.batch(0, *positions).path)
    assert [source.source for source in progress.sources] == ["0", "1", "2", "3", "4"]
    assert [source.committed for source in progress.sources] == positions
    assert [source.kind for source in progress.sources] == [
        SourceKind.FILES,
        SourceKind.KAFKA,
        SourceKind.DELTA,
        SourceKind.RATE,
        SourceKind.UNKNOWN,
    ]


def test_a_source_that_has_only_been_planned_has_its_kind_and_no_committed_position(checkpoint):
    checkpoint.batch(0, None, 1).offset(1, {"logOffset": 0}, 2)
    first, second = read_progress(checkpoint.path).sources
    assert (first.kind, first.committed, first.planned) == (
        SourceKind.FILES,
        None,
        {"logOffset": 0},
    )
    assert (second.committed, second.planned) == (1, 2)


def test_a_commit_between_the_two_listings_is_pending(checkpoint, after_listing):
    checkpoint.batch(0).offset(1)
    after_listing(log, "commits", lambda: checkpoint.commit(1))
    progress = read_progress(checkpoint.path)
    assert (progress.state, progress.committed_batch) == (State.PENDING, 0)


def test_old_batches_may_be_purged(new_checkpoint):
    checkpoint = new_checkpoint().batches(130).purge(29)
    progress = read_progress(checkpoint.path)
    assert (progress.state, progress.committed_batch) == (State.COMMITTED, 129)


def _write(checkpoint, step):
    batch, is_commit = divmod(step, 2)
    return checkpoint.commit(batch) if is_commit else checkpoint.offset(batch)


@settings(max_examples=40)
@given(steps=st.integers(0, 16), retained=st.integers(2, 5))
def test_a_driver_killed_anywhere_is_never_ahead_of_what_it_committed(
    new_checkpoint, steps, retained
):
    checkpoint = new_checkpoint().metadata()
    for step in range(steps):
        _write(checkpoint, step)
        if step % 2 == 0:
            checkpoint.purge(step // 2 - retained)
    progress = read_progress(checkpoint.path)
    planned, committed = (steps + 1) // 2 - 1, steps // 2 - 1
    assert (progress.problem, progress.obstacle) == (None, None)
    assert progress.planned_batch == (planned if planned >= 0 else None)
    assert progress.committed_batch == (committed if committed >= 0 else None)
    if progress.committed_batch is not None:
        assert progress.sources[0].committed == {"logOffset": committed}
    assert progress.state is (
        State.NEVER_RAN if not steps else State.PENDING if steps % 2 else State.COMMITTED
    )


@settings(max_examples=60)
@given(before=st.integers(0, 8), meanwhile=st.integers(0, 8))
def test_a_reader_is_never_ahead_of_a_driver_that_writes_meanwhile(
    new_checkpoint, before, meanwhile
):
    checkpoint, list_names = new_checkpoint().metadata(), log.list_names
    for step in range(before):
        _write(checkpoint, step)

    def list_and_write(folder):
        names = list_names(folder)
        if folder.name == "commits":
            for step in range(before, before + meanwhile):
                _write(checkpoint, step)
        return names

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "list_names", list_and_write)
        progress = read_progress(checkpoint.path)
    assert progress.is_readable
    assert progress.committed_batch == (before // 2 - 1 if before >= 2 else None)
    is_at_rest = before >= 2 and before % 2 == 0 and meanwhile == 0
    assert (progress.state is State.COMMITTED) is is_at_rest
