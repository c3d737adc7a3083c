"""What a reader is yet to read is kept, and why is told in words."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pytest

from tests.conftest import TABLE_ID
from tidegate.core.backfill.book import Backfill
from tidegate.core.backfill.range import DeltaRange
from tidegate.core.backfill.request import Mode
from tidegate.core.maintenance.book import StepKind
from tidegate.core.maintenance.guard import Guard
from tidegate.core.maintenance.history import TableHistory
from tidegate.core.maintenance.needs import Readers
from tidegate.core.maintenance.plan import Planner
from tidegate.core.quarantine import Choice
from tidegate.core.replay import ReplayResult, Replays
from tidegate.core.spec.loader import load_pipeline
from tidegate.core.storage import write_json

DAY = timedelta(days=1)


@pytest.fixture
def kept(plan_table):
    """Tell how many days the planned VACUUM of a table keeps, and why."""

    def find(**which) -> tuple[int, str]:
        plan = plan_table(**which)
        (step,) = (step for step in plan.steps if step.kind is StepKind.VACUUM)
        return round(step.span / DAY), step.reason

    return find


@pytest.fixture
def read_by(checkpoint_of, bronze):
    """Let a pipeline have read some of the table bronze."""

    def read(version: int, name: str = "reader", **place):
        checkpoint = checkpoint_of(name)
        position = checkpoint.delta(version, **place) | {"reservoirId": bronze.id}
        return checkpoint, position

    return read


def test_with_no_reader_the_policy_counts(write_spec, aged, kept):
    write_spec()
    assert kept() == (7, "files were taken away more than 7 days ago")
    write_spec(maintenance={"vacuum_retention": "9d"})
    assert kept()[0] == 9


def test_a_lagging_reader_keeps_the_files_of_what_it_is_yet_to_read(
    write_spec, write_reader, aged, read_by, plan_table
):
    write_spec()
    write_reader()
    checkpoint, position = read_by(1)
    checkpoint.batch(0, position)
    plan = plan_table()
    # Version 1 was written 21 days ago, and what OPTIMIZE took away then Delta has forgotten.
    assert plan.steps == ()
    told = (datetime.now(UTC) - 22 * DAY).strftime("%Y-%m-%d")
    assert plan.warnings == (
        f"VACUUM keeps 22 days instead of 7 days: reader has read up to version 0, of {told}",
    )


@pytest.mark.parametrize(
    ("version", "days"),
    [(2, 20), (3, 7), (4, 7)],
)
def test_what_a_reader_has_read_is_not_kept_for_it(
    write_spec, write_reader, aged, read_by, settings, version, days
):
    write_spec()
    write_reader()
    checkpoint, position = read_by(version)
    checkpoint.batch(0, position)
    planner = Planner.load(settings)
    (table,) = planner.list_tables("writer")
    history = TableHistory(table.log)
    needs = Readers(planner.specs, settings).find_needs(table, history)
    retention = Guard(history, datetime.now(UTC)).find_retention(7 * DAY, needs)
    assert round(retention.span / DAY) == days


def test_a_removal_that_delta_remembers_counts_from_then(
    write_spec, write_reader, bronze, read_by, plan_table
):
    bronze.append().append().optimize().append().optimize()
    for version, days in enumerate((40, 39, 38, 5, 2)):
        bronze.age(version, timedelta(days=days))
    write_spec(maintenance={"vacuum_retention": "1h"})
    write_reader()
    checkpoint, position = read_by(3)
    checkpoint.batch(0, position)
    # Version 3 was written 5 days ago, and taken away 2 days ago: these are enough.
    (step,) = plan_table().steps
    assert 48 <= step.span / timedelta(hours=1) <= 50
    assert "VACUUM keeps 3 days instead of 1 hour: reader has read up to version 2" in step.reason


@pytest.mark.parametrize("is_pending", [False, True])
def test_the_snapshot_that_is_being_read_is_kept(
    write_spec, write_reader, aged, read_by, plan_table, is_pending
):
    write_spec()
    write_reader()
    checkpoint, position = read_by(2, index=0, starting=True)
    checkpoint.offset(0, position)
    if not is_pending:
        checkpoint.commit(0)
    (warning,) = plan_table().warnings
    assert "keeps 23 days" in warning
    assert "reader is about to read the snapshot of version 2" in warning


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ({}, None),
        ({"starting_version": 9}, None),
        ({"starting_version": 1}, "is to read from version 1 on"),
        ({"starting_timestamp": "2020-01-01"}, "is to read from version 0 on"),
    ],
)
def test_a_reader_that_has_not_begun_keeps_what_it_will_start_with(
    write_spec, write_reader, aged, plan_table, source, told
):
    write_spec()
    write_reader(**source)
    plan = plan_table()
    assert (told in " ".join(plan.warnings)) if told else (plan.steps and not plan.warnings)


def test_a_reader_of_another_table_keeps_nothing(
    write_spec, write_reader, aged, checkpoint_of, kept
):
    write_spec()
    write_reader()
    checkpoint = checkpoint_of("reader")
    checkpoint.batch(0, checkpoint.delta(0))  # of the table that was here before
    assert aged.id != TABLE_ID
    assert kept()[0] == 7


def test_a_checkpoint_of_another_source_keeps_nothing(
    write_spec, write_reader, aged, checkpoint_of, kept
):
    write_spec()
    write_reader()
    checkpoint_of("reader").batches(1)
    assert kept()[0] == 7
    checkpoint_of("reader").delete("commits/0")
    assert kept()[0] == 7


def test_a_reader_whose_spec_has_a_mistake_still_counts(
    write_spec, write_reader, aged, read_by, plan_table
):
    write_spec()
    write_reader(nonsense=True)
    checkpoint, position = read_by(1)
    checkpoint.batch(0, position)
    assert "reader has read up to version 0" in plan_table().warnings[0]


def test_of_a_checkpoint_that_cannot_be_read_everything_is_kept(
    write_spec, write_reader, aged, read_by, plan_table
):
    write_spec()
    write_reader()
    checkpoint, position = read_by(4)
    checkpoint.batch(0, position).put("commits/0", b"")
    assert "reader has a checkpoint that cannot be read" in plan_table().warnings[0]


def test_a_reader_of_changes_keeps_what_was_recorded_and_deleted(
    write_spec, write_reader, bronze, read_by, settings, plan_table
):
    bronze.append().append().delete("true")
    for version, days in enumerate((22, 21, 20)):
        bronze.age(version, timedelta(days=days))
    write_spec()
    write_reader(change_data_feed=True)
    checkpoint, position = read_by(2)
    checkpoint.batch(0, position)
    # Version 2 deleted the rows of version 0: they are to be read as deleted.
    assert "keeps 23 days" in plan_table().warnings[0]
    write_reader(skip_change_commits=True)
    assert plan_table().steps


def test_a_backfill_that_is_not_finished_keeps_its_versions(
    write_spec, write_reader, aged, settings, plan_table
):
    write_spec()
    write_reader()
    slices = (DeltaRange(0, 0), DeltaRange(1, 2))
    backfill = Backfill(
        "backfill__x", Mode.MERGE, DeltaRange(0, 2), slices, datetime.now(UTC).isoformat()
    )
    folder = settings.state_of("reader") / "backfills" / "backfill__x"
    write_json(folder / "plan.json", asdict(backfill))
    assert "backfill__x of reader is yet to read versions 0 to 2" in plan_table().warnings[0]
    result = {"rows_read": 3, "malformed": 0, "passages": {}, "written": {}, "quarantined": 0}
    write_json(folder / "slices" / "0.json", {"number": 0} | result)
    assert "is yet to read versions 1 to 2" in plan_table().warnings[0]
    write_json(folder / "slices" / "1.json", {"number": 1} | result)
    assert plan_table().steps


def test_a_replay_that_is_not_finished_keeps_the_version_that_it_reads(
    write_spec, aged, settings, plan_table
):
    # The quarantine of this pipeline is the table that the test has at hand.
    write_spec(sinks=[{"type": "delta", "table": "other"}], quarantine="bronze")
    pipeline = load_pipeline(settings.pipelines, "writer").require()
    file = settings.state_of("writer") / "replays" / "replay__2026-01-01.json"
    choice = asdict(Choice())
    write_json(file, {"id": "replay__2026-01-01", "version": 2, "choice": choice, "rows": 9})
    (warning,) = plan_table().warnings
    assert "replay__2026-01-01 of writer is not finished, and reads version 2" in warning
    replays = Replays(pipeline, settings)
    replays.finish(replays.read("replay__2026-01-01"), ReplayResult({}, 0))
    assert plan_table().steps


def test_what_the_table_itself_says_is_kept(write_spec, aged, kept):
    write_spec()
    aged.checksum(
        3,
        metadata={
            "id": aged.id,
            "configuration": {"delta.deletedFileRetentionDuration": "interval 9 days"},
        },
    )
    days, reason = kept()
    assert days == 9
    assert "the table says delta.deletedFileRetentionDuration" in reason


@pytest.mark.parametrize("mistake", [{}, {"nonsense": True}])
def test_a_first_batch_that_is_pending_counts_whatever_the_spec_says(
    write_spec, write_reader, aged, read_by, plan_table, mistake
):
    write_spec()
    write_reader(starting_version=0, **mistake)
    checkpoint, position = read_by(3)
    checkpoint.batch(0, position).delete("commits/0")
    (told,) = plan_table().warnings
    assert "instead of 7 days: " in told


@pytest.mark.parametrize("mistake", [{}, {"nonsense": True}])
def test_a_checkpoint_that_cannot_be_read_counts_whatever_the_spec_says(
    write_spec, write_reader, aged, read_by, plan_table, mistake
):
    write_spec()
    write_reader(**mistake)
    checkpoint, position = read_by(0)
    checkpoint.batch(0, position).put("commits/0", b"")
    (told,) = plan_table().warnings
    assert "instead of 7 days: " in told


@pytest.mark.parametrize("mistake", [{}, {"nonsense": True}])
def test_a_backfill_that_is_not_done_counts_whatever_the_spec_says(
    write_spec, write_reader, aged, settings, plan_table, mistake
):
    write_spec()
    write_reader(**mistake)
    now = datetime.now(UTC).isoformat()
    whole = DeltaRange(0, 2)
    begun = Backfill("backfill__x", Mode.MERGE, whole, (whole,), now)
    folder = settings.state_of("reader") / "backfills" / begun.id
    write_json(folder / "plan.json", asdict(begun))
    (told,) = plan_table().warnings
    assert "instead of 7 days: " in told
