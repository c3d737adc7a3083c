"""Planning without a JVM: what is there to do, and what no retry can mend."""

import json
import os
import shutil
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.condition import RunReached, Verdict, judge
from tidegate.core.deltalog import DeltaLog
from tidegate.core.ledger import Announcement, Baseline, BatchRecord, Decision, Ledger, SinkRecord
from tidegate.core.plan import plan_run
from tidegate.core.shape import Shape
from tidegate.core.spec.expectation import Expectation
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.storage import list_names, open_path
from tidegate.core.surgery.backup import Backups
from tidegate.core.target import BatchTarget, DeltaTarget, DrainTarget, FilesTarget
from tidegate.core.waiting import Unit, Waiting

NOW_MS = 1_794_800_000_000
DAY_MS = 86_400_000
SINKS = [{"type": "delta", "table": "sink"}]


def pipeline(**source):
    return Pipeline.model_validate({"name": "orders", "source": source, "sinks": SINKS})


FILES = pipeline(type="files", path="landing", format="text", max_files_per_trigger=5)
DELTA = pipeline(type="delta", table="table", max_files_per_trigger=5)
RATE = pipeline(type="rate", rows_per_batch=5)
KINESIS = pipeline(type="spark", format="aws-kinesis")


class Landing:
    """A landing zone, and the checkpoint of a query that reads from it."""

    def __init__(self, folder, checkpoint):
        self.folder = folder
        self.checkpoint = checkpoint
        folder.mkdir(parents=True)

    def put(self, *names, modified_ms=NOW_MS):
        for name in names:
            (self.folder / name).write_text("x\n")
            os.utime(self.folder / name, ns=(0, modified_ms * 1_000_000))
        return self

    def log(self, offset, *names, modified_ms=NOW_MS):
        self.checkpoint.log_files(offset, *self.paths(*names), modified_ms=modified_ms)
        return self

    def read(self, offset, *names, modified_ms=NOW_MS):
        self.put(*names, modified_ms=modified_ms).log(offset, *names, modified_ms=modified_ms)
        self.checkpoint.batch(offset)
        return self

    def paths(self, *names):
        return tuple(str(self.folder / name) for name in names)


@pytest.fixture
def checkpoint(checkpoint_of):
    return checkpoint_of("orders")


@pytest.fixture
def landing(settings, checkpoint):
    return Landing(Path(settings.data) / "landing", checkpoint)


@pytest.fixture
def table(settings, table_at):
    return table_at(Path(settings.data) / "table")


@pytest.fixture(autouse=True)
def written(settings, checkpoint, table_at):
    """The sink, which holds what the checkpoint says."""
    written = table_at(Path(settings.data) / "sink")
    return written.append(app_id=f"{checkpoint.query_id}:main", batch=0)


@pytest.fixture
def ledger(settings):
    return Ledger.beside(settings.state_of("orders"))


@pytest.fixture
def sink(written, table_at):
    """The sink, before anything was written to it."""
    shutil.rmtree(written.path)
    return table_at(written.path)


@pytest.fixture
def plan(request, settings, checkpoint, written):
    """Plan a run, and see that the ledger has the very plan that is returned.

    The sink is given what the checkpoint says that it has, unless the test sees to that itself.
    """
    app_id = f"{checkpoint.query_id}:main"

    def fill_sink():
        progress = read_progress(checkpoint.path)
        log = DeltaLog(open_path(str(written.path)))
        newest = log.find_version()
        held = None if newest is None else log.find_transaction(newest, app_id)
        if held is not None and held < (progress.committed_batch or 0):
            written.append(app_id=app_id, batch=progress.committed_batch)

    def plan(spec, run_id="run 1", **more):
        if "sink" not in request.fixturenames:
            fill_sink()
        planned = plan_run(spec, settings, run_id, **more)
        assert Ledger.beside(settings.state_of("orders")).read_run(run_id).plan == planned
        return planned

    return plan


def position(table, version, **more):
    return {"sourceVersion": 1, "reservoirId": table.id, "reservoirVersion": version} | more


def judge_run(settings, run_id="run 1"):
    return judge(settings.checkpoint_of("orders"), [RunReached(run_id)]).verdict


def hold(sink, checkpoint, batch):
    """Let the sink hold a batch, as it does before Spark commits it."""
    sink.append(app_id=f"{checkpoint.query_id}:main", batch=batch)


def list_files(root):
    return {path: path.stat().st_mtime_ns for path in Path(root).rglob("*")}


# Files.


def test_a_first_run_is_to_read_every_file(landing, plan):
    landing.put("b.json", "a b.json", "é#50%.json", ".hidden", "_hidden")
    planned = plan(FILES)
    assert planned.decision is Decision.RUN
    assert planned.target == FilesTarget(landing.paths("a b.json", "b.json", "é#50%.json"))
    assert (planned.reason, planned.baseline) == ("3 files to read", Baseline(None, None))


def test_a_next_run_is_to_read_the_new_files(landing, plan):
    landing.read(0, "a", "b").put("c")
    planned = plan(FILES)
    assert planned.target == FilesTarget(landing.paths("c"), since=0)
    assert planned.baseline == Baseline(landing.checkpoint.query_id, 0)


def test_a_run_is_reached_once_its_files_are_committed(landing, plan, settings, written):
    landing.read(0, "a").put("b", "c")
    plan(FILES)
    landing.read(1, "b")
    assert judge_run(settings) is Verdict.WAITING
    landing.read(2, "c")
    reason = judge(settings.checkpoint_of("orders"), [RunReached("run 1")]).reason
    assert reason.startswith("Batch 2 is committed, but the table ")
    assert "holds batches up to 0 only of this query" in reason
    hold(written, landing.checkpoint, 2)
    assert judge_run(settings) is Verdict.REACHED


@pytest.mark.parametrize(("count", "reason"), [(0, "among 0"), (2, "among 2")])
def test_without_new_files_the_run_is_idle(landing, plan, count, reason):
    if count:
        landing.read(0, *map(str, range(count)))
    planned = plan(FILES)
    assert (planned.decision, planned.target) == (Decision.IDLE, None)
    assert planned.reason == f"no new files {reason}"


def test_an_idle_plan_writes_nothing_but_the_ledger(landing, plan, settings):
    landing.read(0, "a")
    runs = Path(settings.state) / "orders" / "runs"
    before = list_files(settings.checkpoint_of("orders")) | list_files(settings.data)
    assert plan(FILES).decision is Decision.IDLE
    after = list_files(settings.home)
    assert {path: after[path] for path in before} == before
    written = {path for path in after if path not in before and path.is_file()}
    assert written == {runs / "latest.json"}


@pytest.mark.parametrize(("query", "batch"), [(None, None), ("another query", 9), ("same", 0)])
def test_an_idle_run_announces_what_no_run_did(landing, plan, query, batch):
    landing.read(0, "a").read(1, "b")
    query_id = landing.checkpoint.query_id
    told = Announcement(query_id if query == "same" else query, batch)
    planned = plan(FILES, announced=told)
    assert (planned.decision, planned.target) == (Decision.IDLE, BatchTarget(1))
    assert planned.reason == "no new files among 2; batch 1 was never announced downstream"
    assert plan(FILES, "run 2", announced=Announcement(query_id, 1)).target is None


def test_where_nobody_is_told_nothing_is_announced(landing, plan, ledger):
    landing.read(0, "a")
    assert (plan(FILES).decision, plan(FILES).target) == (Decision.IDLE, None)
    assert list_names(ledger.folder) == ["latest.json"]


def test_a_pipeline_that_never_ran_has_nothing_to_announce(landing, plan):
    assert plan(FILES, announced=Announcement()).target is None


def test_a_broken_ledger_stays_broken_until_it_is_mended(landing, plan, settings, ledger):
    landing.read(0, "a")
    plan(FILES)
    (ledger.folder / "latest.json").write_text("{")
    shutil.rmtree(settings.checkpoint_of("orders"))
    for run_id in ("run 2", "run 3"):
        planned = plan_run(FILES, settings, run_id)
        assert planned.decision is Decision.BLOCKED
        assert "latest.json is broken" in planned.reason


@pytest.mark.parametrize("content", ["v9\n{}\n{}", "nonsense"])
def test_an_old_entry_that_is_broken_stops_no_plan(landing, plan, ledger, content):
    landing.put("a", "b")
    plan(FILES)
    landing.read(0, "a").read(1, "b").checkpoint.write("offsets/0", content)
    assert plan(FILES, "run 2").decision is Decision.IDLE
    assert ledger.read_batch(0).sources == []


def test_a_sink_whose_log_is_cut_off_blocks_in_words(landing, plan, sink, checkpoint):
    landing.put("a")
    plan(FILES)
    landing.read(0, "a")
    sink.append(app_id=f"{checkpoint.query_id}:main")
    newest = max(sink.log.glob("*.json"))
    newest.write_text(newest.read_text()[:40])
    planned = plan(FILES, "run 2")
    assert planned.decision is Decision.BLOCKED
    assert "is broken" in planned.reason


def test_batches_that_a_killed_driver_did_not_record_are_written_down(
    landing, plan, ledger, sink, checkpoint
):
    writer = f"{checkpoint.query_id}:main"
    landing.put("a", "b")
    sink.append()
    assert plan(FILES).decision is Decision.RUN
    landing.read(0, "a").read(1, "b")
    sink.append(app_id=writer, batch=0, rows=7).append().append(app_id=writer, batch=1, rows=8)
    plan(FILES, "run 2")
    first, second = ledger.read_run("run 1").batches
    assert isinstance(first, BatchRecord)
    assert (first.batch_id, first.run_id, first.input_rows) == (0, "run 1", None)
    assert first.sinks == {"main": SinkRecord(rows=7, version=1)}
    assert second.sinks == {"main": SinkRecord(rows=8, version=3)}
    assert second.sources == [
        {"description": "0", "startOffset": {"logOffset": 0}, "endOffset": {"logOffset": 1}}
    ]
    assert ledger.read_run("run 1").summary.output_rows == 15
    assert ledger.read_run("run 2").batches == ()


def test_only_what_is_missing_is_written_down(landing, plan, ledger):
    landing.put("a", "b")
    assert plan(FILES).decision is Decision.RUN
    landing.read(0, "a").read(1, "b")
    sources = [{"endOffset": {"logOffset": 0}}]
    kept = BatchRecord(0, "run 1", 5, 1.5, "2026-11-16T03:49:20+00:00", sources, {})
    ledger.record_batch(kept)
    plan(FILES, "run 2")
    assert [batch.input_rows for batch in ledger.read_run("run 1").batches] == [5, None]
    assert ledger.read_batch(0) == kept


def test_a_pending_batch_is_part_of_the_run(landing, plan):
    landing.read(0, "a").put("b", "c").log(1, "b").checkpoint.offset(1)
    planned = plan(FILES)
    assert planned.target == FilesTarget(landing.paths("b", "c"), since=0)
    assert planned.reason == "2 files to read, batch 1 is pending"


def test_files_that_were_logged_before_a_kill_are_part_of_the_run(landing, plan):
    landing.read(0, "a").put("b").log(1, "b")
    assert plan(FILES).target == FilesTarget(landing.paths("b"), since=0)


def test_a_pending_batch_without_new_files_is_not_idle(landing, plan, settings, written):
    landing.read(0, "a").checkpoint.offset(1, {"logOffset": 0})  # a batch for the watermark alone
    planned = plan(FILES)
    assert (planned.decision, planned.target) == (Decision.RUN, BatchTarget(1))
    assert planned.reason == "batch 1 is pending"
    assert judge_run(settings) is Verdict.WAITING
    hold(written, landing.checkpoint, 1)
    landing.checkpoint.commit(1)
    assert judge_run(settings) is Verdict.REACHED


def test_a_late_file_is_read_and_one_too_old_is_told(landing, plan):
    landing.read(0, "a").put("late", modified_ms=NOW_MS - 7 * DAY_MS)
    landing.put("too_old", "too_old_too", modified_ms=NOW_MS - 7 * DAY_MS - 1)
    planned = plan(FILES)
    assert planned.target == FilesTarget(landing.paths("late"), since=0)
    assert planned.reason == "1 files to read"
    assert planned.warning == "2 files are older than max_file_age and will never be read"


def test_only_files_too_old_are_nothing_to_do(landing, plan):
    landing.read(0, "a").put("too_old", modified_ms=NOW_MS - 8 * DAY_MS)
    planned = plan(FILES)
    assert planned.decision is Decision.IDLE
    assert planned.reason == "no new files among 2"
    assert planned.warning == "1 files are older than max_file_age and will never be read"


def test_the_age_limit_is_the_spec_s_own(landing, plan):
    landing.read(0, "a").put("late", modified_ms=NOW_MS - 2 * DAY_MS)
    source = FILES.source.model_dump(exclude_unset=True, by_alias=True) | {"max_file_age": "1d"}
    assert plan(pipeline(**source)).decision is Decision.IDLE


def test_an_overwritten_file_is_not_read_again_and_the_plan_says_so(landing, plan):
    landing.read(0, "a", "b").put("a", modified_ms=NOW_MS + 5)
    planned = plan(FILES)
    assert planned.decision is Decision.IDLE
    assert planned.reason == "no new files among 2"
    assert planned.warning == (
        "1 files are overwritten after they were read and will not be read again"
    )


def test_all_that_will_not_be_read_is_told_beside_what_will(landing, plan):
    landing.read(0, "a").put("a", modified_ms=NOW_MS + 5).put("b")
    landing.put("too_old", modified_ms=NOW_MS - 8 * DAY_MS)
    planned = plan(FILES)
    assert planned.target == FilesTarget(landing.paths("b"), since=0)
    assert planned.reason == "1 files to read"
    assert planned.warning == (
        "1 files are older than max_file_age and will never be read; "
        "1 files are overwritten after they were read and will not be read again"
    )


def test_a_file_forgotten_and_overwritten_is_not_done_before_it_is_read_again(
    landing, plan, settings, written
):
    landing.read(0, "old", modified_ms=NOW_MS - 30 * DAY_MS).read(1, "new").put("old")
    assert plan(FILES).target == FilesTarget(landing.paths("old"), since=1)
    assert judge_run(settings) is Verdict.WAITING
    hold(written, landing.checkpoint, 2)
    landing.read(2, "old")
    assert judge_run(settings) is Verdict.REACHED


def test_ten_batches_and_more_are_still_known(landing, plan):
    for offset in range(23):
        landing.read(offset, f"{offset}.json")
    landing.checkpoint.delete(*(f"sources/0/{offset}" for offset in range(9)))
    landing.put("new.json")
    assert plan(FILES).target == FilesTarget(landing.paths("new.json"), since=22)


def test_data_and_state_may_be_on_a_store(settings):
    root = f"memory://{uuid4().hex}"
    settings = replace(settings, data=f"{root}/data", state=f"{root}/state")
    landing = open_path(f"{root}/data/landing")
    landing.mkdir(parents=True)
    for name in ("a b", "é"):
        (landing / name).write_text("x")
    planned = plan_run(FILES, settings, "run 1")
    assert planned.target == FilesTarget(((landing / "a b").path, (landing / "é").path))
    assert judge_run(settings) is Verdict.WAITING


def test_a_run_that_is_planned_again_keeps_its_baseline(landing, plan):
    landing.read(0, "a").put("b", "c")
    first = plan(FILES)
    landing.read(1, "b")
    again = plan(FILES)
    assert again.baseline == first.baseline == Baseline(landing.checkpoint.query_id, 0)
    assert again.planned_at == first.planned_at
    assert again.target == FilesTarget(landing.paths("c"), since=1)


# Delta.


@pytest.mark.parametrize("has_checksum", [True, False])
def test_a_table_is_read_to_its_newest_version(table, checkpoint, plan, has_checksum):
    table.append().append()
    if has_checksum:
        table.checksum(1, metadata={"id": table.id}, setTransactions=[])
    assert plan(DELTA).target == DeltaTarget(1)
    checkpoint.batch(0, position(table, 1, index=-1, isStartingVersion=False))
    planned = plan(DELTA)
    assert (planned.decision, planned.target) == (Decision.RUN, DeltaTarget(1))
    checkpoint.batch(1, position(table, 2, index=-1, isStartingVersion=False))
    planned = plan(DELTA, "run 2")
    assert planned.decision is Decision.IDLE
    assert planned.reason == "the table is read up to its newest version, 1"


@pytest.mark.parametrize(
    ("version", "more"), [(0, {"index": 3}), (0, {"index": 5, "isStartingVersion": True})]
)
def test_a_table_that_is_read_in_part_is_read_on(table, checkpoint, plan, version, more):
    checkpoint.batch(0, position(table.append(), version, **more))
    assert plan(DELTA).target == DeltaTarget(0)


@pytest.mark.parametrize("left_out", [(), (1,), (1, 2)])
def test_a_sink_that_lacks_committed_batches_blocks_unless_they_were_skipped(
    landing, sink, plan, settings, left_out
):
    landing.read(0, "a").read(1, "b").read(2, "c").put("d")
    hold(sink, landing.checkpoint, 0)
    skips = Path(settings.state) / "orders" / "skips"
    skips.mkdir()
    for batch in left_out:
        (skips / f"{batch}.json").write_text("{}")
    planned = plan(FILES)
    is_blocked = left_out != (1, 2)
    assert planned.decision is (Decision.BLOCKED if is_blocked else Decision.RUN)
    assert ("has the rows of batches up to 0" in planned.reason) == is_blocked
    if is_blocked:
        assert "rewind NAME --to-batch 0 --new-query-id" in planned.reason


def test_a_sink_that_was_restored_blocks_although_its_list_of_batches_is_the_same(
    landing, sink, plan
):
    landing.read(0, "a").read(1, "b").put("c")
    for batch in range(2):
        hold(sink, landing.checkpoint, batch)
    sink.append().restore(2, to=0)
    planned = plan(FILES)
    assert planned.decision is Decision.BLOCKED
    assert "The table was restored to an earlier version" in planned.reason


def test_a_change_by_hand_that_was_cut_off_blocks(landing, plan):
    landing.read(0, "a").put("b")
    Backups(landing.checkpoint.path).make("rewind")
    planned = plan(FILES)
    assert planned.decision is Decision.BLOCKED
    assert "did not come to its end" in planned.reason


@pytest.mark.parametrize("is_held", [True, False])
def test_other_rules_wait_for_a_pending_batch_that_a_table_took_by_the_old_ones(
    landing, plan, settings, table_at, is_held
):
    landing.read(0, "a.txt").put("b.txt").log(1, "b.txt").checkpoint.offset(1)
    ruled = FILES.model_copy(update={"expect": (Expectation(not_null=("value",)),)})
    Ledger.beside(settings.state_of("orders")).record_shape(Shape.of(ruled, settings.pipelines))
    sink = table_at(settings.locate("sink"))
    sink.append(app_id=f"{landing.checkpoint.query_id}:main", batch=0)
    if is_held:
        sink.append(app_id=f"{landing.checkpoint.query_id}:main", batch=1)
    assert plan(ruled).decision is Decision.RUN
    planned = plan(FILES)
    assert planned.decision is (Decision.BLOCKED if is_held else Decision.RUN)
    assert ("the rules have been changed since" in planned.reason) == is_held


def test_a_pending_batch_of_a_table_is_told(table, checkpoint, plan):
    table.append().append()
    checkpoint.batch(0, position(table, 1)).offset(1, position(table, 2))
    assert plan(DELTA).reason == "the table is at version 1, batch 1 is pending"


def test_a_pending_batch_without_new_versions_is_not_idle(table, checkpoint, plan):
    end = position(table.append(), 1)
    checkpoint.batch(0, end).offset(1, end)  # a batch for the watermark alone
    planned = plan(DELTA)
    assert (planned.decision, planned.target) == (Decision.RUN, BatchTarget(1))
    assert planned.reason == "batch 1 is pending"


def test_a_pending_batch_without_new_versions_is_not_done_before_its_commit(
    table, checkpoint, plan, settings, written
):
    end = position(table.append(), 1)
    checkpoint.batch(0, end).offset(1, end)
    plan(DELTA)
    assert judge_run(settings) is Verdict.WAITING
    hold(written, checkpoint, 1)
    checkpoint.commit(1)
    assert judge_run(settings) is Verdict.REACHED


def test_a_log_that_was_cleaned_past_the_position_blocks(table, checkpoint, plan):
    for _ in range(4):
        table.append()
    checkpoint.batch(0, position(table, 2))
    table.checksum(3, metadata={"id": table.id}, setTransactions=[])
    for version in (0, 1, 2):
        (table.log / f"{version:020}.json").unlink()
    planned = plan(DELTA)
    assert planned.decision is Decision.BLOCKED
    assert planned.reason.startswith("Versions 2 to 2 of the table ")


@pytest.fixture
def changed(table):
    """A table of which the newest version, 1, has two files of recorded changes."""
    change = {"path": "_change_data/x", "partitionValues": {}, "size": 1, "dataChange": False}
    actions = [{"commitInfo": {"timestamp": NOW_MS}}, {"cdc": change}, {"cdc": change}]
    table.append().checksum(1, metadata={"id": table.id}, setTransactions=[])
    (table.log / f"{1:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return table


def test_a_version_of_recorded_changes_is_read_to_its_last_file(changed, checkpoint, plan):
    feed = pipeline(type="delta", table="table", max_files_per_trigger=5, change_data_feed=True)
    assert plan(feed).target == DeltaTarget(1, last_index=1)
    checkpoint.batch(0, position(changed, 1, index=0))
    assert plan(feed, "run 2").target == DeltaTarget(1, last_index=1)
    checkpoint.batch(1, position(changed, 1, index=1))
    planned = plan(feed, "run 3")
    assert planned.decision is Decision.IDLE
    assert planned.reason == "the table is read up to its newest version, 1"


def test_recorded_changes_are_passed_over_where_they_are_not_read(changed, checkpoint, plan):
    checkpoint.batch(0, position(changed, 1, index=1))
    assert plan(DELTA).target == DeltaTarget(1)


def test_a_version_without_recorded_changes_is_read_to_the_start_of_the_next(table, plan):
    table.append()
    feed = pipeline(type="delta", table="table", max_files_per_trigger=5, change_data_feed=True)
    assert plan(feed).target == DeltaTarget(0)


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        ({"starting_version": 1}, "starting_version 1 is not there yet; newest is 0"),
        ({"starting_timestamp": "2999-01-01"}, "nothing was committed since starting_timestamp"),
    ],
)
def test_a_start_that_is_ahead_of_the_table_is_idle(table, plan, start, reason):
    table.append()
    planned = plan(pipeline(type="delta", table="table", max_files_per_trigger=5, **start))
    assert planned.decision is Decision.IDLE
    assert reason in planned.reason


@pytest.mark.parametrize(
    "start", [{"starting_version": 0}, {"starting_timestamp": "2001-01-01"}, {}]
)
def test_a_start_within_the_table_is_to_be_read(table, plan, start):
    table.append()
    source = {"type": "delta", "table": "table", "max_files_per_trigger": 5}
    assert plan(pipeline(**source, **start)).target == DeltaTarget(0)


def test_a_start_is_for_the_first_run_only(table, checkpoint, plan):
    checkpoint.batch(0, position(table.append(), 0, index=1))
    source = {"type": "delta", "table": "table", "max_files_per_trigger": 5}
    assert plan(pipeline(**source, starting_version=9)).target == DeltaTarget(0)


# Rate.


def test_a_source_without_an_end_is_to_commit_one_more_batch(checkpoint, plan):
    assert plan(RATE).target == BatchTarget(0)
    assert plan(RATE, "run 2").decision is Decision.RUN
    checkpoint.batch(0, {"offset": 5, "timestamp": 1})
    assert plan(RATE, "run 3").target == BatchTarget(1)
    checkpoint.offset(1, {"offset": 10, "timestamp": 2})
    assert plan(RATE, "run 4").target == BatchTarget(1)


# Blocked.


def assert_blocked(planned, *words):
    assert (planned.decision, planned.target) == (Decision.BLOCKED, None)
    for word in words:
        assert word in planned.reason


def test_a_missing_landing_zone_blocks(plan, settings):
    planned = plan(FILES)
    assert_blocked(planned, f"{settings.data}/landing does not exist", "Create the folder")


def test_a_missing_table_blocks(plan, settings):
    planned = plan(DELTA)
    assert_blocked(planned, f"no Delta table at {settings.data}/table", "Run the pipeline that")


@pytest.mark.parametrize("has_checksum", [True, False])
def test_a_table_created_anew_blocks(table, checkpoint, plan, has_checksum):
    checkpoint.batch(0, position(table.append(), 1))
    known_id = table.id
    shutil.rmtree(table.path)
    table.append()
    if has_checksum:
        table.checksum(0, metadata={"id": table.id})
    assert table.id != known_id
    assert_blocked(
        plan(DELTA), f"has id {table.id}", f"was reading {known_id}", "a new name and a new table"
    )


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda c: c.cut("commits/2", 0), ["commits/2 is corrupt", "restore the checkpoint"]),
        (lambda c: c.cut("commits/2", 10), ["commits/2 is corrupt", "Do not restart"]),
        (lambda c: c.cut("offsets/2", 2), ["offsets/2 is corrupt", "Do not restart"]),
        (lambda c: c.cut("offsets/2", -2), ["offsets/2 is corrupt", "Do not restart"]),
        (lambda c: c.delete("offsets/2"), ["batch 2 is committed", "Do not restart"]),
        (lambda c: c.delete("offsets"), ["offsets/ is empty", "Do not restart"]),
        (lambda c: c.delete("offsets/1"), ["offsets/1 is missing", "Restore it from a backup"]),
        (lambda c: c.delete("offsets/1", "commits/2"), ["offsets/1 is missing", "Restore it"]),
        (lambda c: c.delete("metadata"), ["metadata is corrupt", "the query's id is lost"]),
        (lambda c: c.write("metadata", ""), ["metadata is corrupt"]),
        (lambda c: c.write("commits/2", "v4\n{}"), ["commits/2 has version 4", "Upgrade"]),
        (lambda c: c.write("offsets/2", "v3\n{}"), ["offsets/2 has version 3", "Upgrade"]),
        (lambda c: c.cut("sources/0/1", 10), ["sources/0/1 is corrupt"]),
        (lambda c: c.write("sources/0/1", "v2"), ["sources/0/1 has version 2", "Upgrade"]),
        (lambda c: c.delete("sources"), ["sources/0"]),
        (lambda c: c.delete("sources/0/1"), ["sources/0/1"]),
        (lambda c: c.delete("sources/0/2"), ["sources/0/2"]),
    ],
    ids=[
        "empty commit",
        "cut commit",
        "cut offsets",
        "cut offset",
        "commit ahead",
        "no offsets",
        "no start of the committed batch",
        "no start of the pending batch",
        "no metadata",
        "empty metadata",
        "newer commit",
        "newer offsets",
        "cut file log",
        "newer file log",
        "no file log",
        "gap in the file log",
        "end of the file log",
    ],
)
def test_a_damaged_checkpoint_blocks_with_fact_and_remedy(landing, plan, damage, words):
    for offset in range(3):
        landing.read(offset, f"{offset}.json")
    damage(landing.put("new.json").checkpoint)
    assert_blocked(plan(FILES), *words)


@pytest.mark.parametrize(
    ("spec", "start"),
    [(FILES, {"orders": {"0": 5}}), (DELTA, {"logOffset": 0}), (RATE, {"logOffset": 0})],
    ids=["files", "delta", "rate"],
)
def test_a_checkpoint_of_another_kind_of_source_blocks(landing, table, plan, spec, start):
    table.append()
    landing.checkpoint.batch(0, start)
    kind = "kafka" if "orders" in start else "files"
    assert_blocked(
        plan(spec),
        f"The checkpoint was reading {kind}, and the spec says {spec.source.type}.",
        "Give the changed pipeline a new name",
    )


@pytest.mark.parametrize("name", ["a*", "a?", "[1]", "a]", "{a}", "a\\b"])
def test_a_new_file_whose_name_is_a_pattern_blocks(landing, plan, name):
    landing.read(0, "a").put("b", name)
    path = landing.folder / name
    assert_blocked(
        plan(FILES),
        f"1 files have one of * ? [ ] {{ }} \\ in their names, such as {path}.",
        "Rename",
    )


def test_a_file_whose_name_is_a_pattern_is_no_obstacle_once_it_is_read(landing, plan):
    landing.read(0, "a[1]*").put("b")
    assert plan(FILES).target == FilesTarget(landing.paths("b"), since=0)


def test_a_data_root_that_looks_like_a_pattern_is_fine(settings):
    settings = replace(settings, data=f"{settings.data} [1]")
    landing = Path(settings.data) / "landing"
    landing.mkdir(parents=True)
    (landing / "a").touch()
    assert plan_run(FILES, settings, "run 1").target == FilesTarget((str(landing / "a"),))


@pytest.mark.parametrize("has_checksum", [True, False])
@pytest.mark.parametrize("committed", [0, 2])
def test_a_sink_ahead_of_its_checkpoint_blocks(landing, sink, plan, has_checksum, committed):
    app_id = f"{landing.checkpoint.query_id}:main"
    sink.append(app_id=app_id, batch=5)
    if has_checksum:
        recorded = [{"appId": app_id, "version": 5}]
        sink.checksum(0, metadata={"id": sink.id}, setTransactions=recorded)
    landing.checkpoint.metadata()  # kept, while offsets, commits and sources were deleted
    for offset in range(committed):
        landing.read(offset, f"{offset}.json")
    landing.put("new.json")
    assert_blocked(
        plan(FILES),
        f"{sink.path} holds batch 5 of this query, and the checkpoint knows batches up to "
        f"{committed - 1} only: the next ones would be skipped as already written.",
        "Restore it from a backup",
    )


def test_a_sink_that_another_query_or_sink_wrote_is_fine(landing, sink, plan):
    landing.read(0, "a").put("b")
    sink.append(app_id=f"{landing.checkpoint.query_id}:main", batch=0)
    sink.append(app_id="another query:main", batch=5)
    sink.append(app_id=f"{landing.checkpoint.query_id}:other", batch=5)
    assert plan(FILES).decision is Decision.RUN


def test_a_sink_that_holds_nothing_of_this_query_blocks(landing, sink, plan):
    landing.read(0, "a")
    blocked = plan(FILES)
    assert blocked.decision is Decision.BLOCKED
    assert "holds no batch of this query, and the checkpoint is at batch 0" in blocked.reason
    sink.append(app_id="another query:main", batch=5)
    assert plan(FILES).decision is Decision.BLOCKED


@pytest.mark.parametrize("damage", ["deleted", "replaced", "set back"])
def test_a_checkpoint_that_is_not_the_last_run_s_blocks(
    landing, plan, checkpoint_of, settings, damage
):
    landing.read(0, "a").read(1, "b").put("c")
    assert plan(FILES).decision is Decision.RUN
    if damage == "set back":
        (settings.checkpoint_of("orders") / "commits" / "1").unlink()
        (settings.checkpoint_of("orders") / "offsets" / "1").unlink()
    else:
        shutil.rmtree(str(settings.checkpoint_of("orders")))
    if damage == "replaced":
        checkpoint_of("orders").metadata(str(uuid4()))
    for attempt in ("run 2", "run 2", "run 3"):  # being told once must not count as an answer
        blocked = plan(FILES, attempt)
        assert blocked.decision is Decision.BLOCKED
        assert "the last run left it at batch 1" in blocked.reason
        assert "delete the pipeline's whole state folder and its table" in blocked.reason


def test_a_pending_batch_whose_file_is_gone_blocks(landing, plan):
    landing.read(0, "a").put("b").log(1, "b")
    (landing.folder / "b").unlink()
    blocked = plan(FILES)
    assert blocked.decision is Decision.BLOCKED
    assert "1 files of a batch that is not committed are gone" in blocked.reason


def test_a_sink_at_its_checkpoint_or_one_pending_batch_ahead_is_fine(landing, sink, plan):
    app_id = f"{landing.checkpoint.query_id}:main"
    sink.append(app_id=app_id, batch=0)
    landing.read(0, "a").put("b")
    assert plan(FILES).decision is Decision.RUN
    landing.log(1, "b").checkpoint.offset(1)
    sink.append(app_id=app_id, batch=1)
    assert plan(FILES, "run 2").decision is Decision.RUN


def test_a_blocked_run_can_be_planned_again_once_it_is_mended(landing, plan):
    landing.read(0, "a").put("b").checkpoint.cut("commits/0", 0)
    assert plan(FILES).decision is Decision.BLOCKED
    landing.checkpoint.commit(0)
    planned = plan(FILES)
    assert planned.target == FilesTarget(landing.paths("b"), since=0)
    assert planned.baseline == Baseline(landing.checkpoint.query_id, 0)


def test_where_only_spark_knows_the_end_a_run_is_always_needed(settings, checkpoint):
    for _ in range(2):
        plan = plan_run(KINESIS, settings, "run")
        assert (plan.decision, plan.target) == (Decision.RUN, DrainTarget())
        assert plan.reason == "only Spark knows where a source of format aws-kinesis ends"
        checkpoint.offset(
            0, {"shard-0": "49545115243490985018280067714973144582180062593244200961"}
        )
        checkpoint.commit(0)


@pytest.mark.parametrize(
    ("announced", "committed", "expected"),
    [
        (Announcement("q", 3), 3, False),
        (Announcement("q", 2), 3, True),
        (Announcement("other", 3), 3, True),
        (Announcement(), 0, True),
        (Announcement(), None, False),
        (None, 3, True),
    ],
)
def test_only_what_was_not_told_yet_is_news(settings, announced, committed, expected):
    plan = replace(plan_run(KINESIS, settings, "run"), announced=announced)
    assert plan.has_news("q", committed) is expected


def test_files_that_wait_are_counted_and_the_oldest_is_told(plan, landing):
    now_ms = int(time.time() * 1000)
    landing.read(0, "a.txt", modified_ms=now_ms - 900_000)
    landing.put("b.txt", modified_ms=now_ms - 600_000).put("c.txt", modified_ms=now_ms)
    waiting = plan(FILES).waiting["0"]
    assert (waiting.unit, waiting.count, waiting.headroom_seconds) == ("files", 2, None)
    assert waiting.oldest_seconds == pytest.approx(600, abs=30)


def test_versions_that_wait_are_told_with_the_time_that_the_log_keeps_them(plan, table, checkpoint):
    table.append().append().append().date(1, datetime.now(UTC) - timedelta(days=1))
    checkpoint.batch(0, position(table, 1, index=-1))
    waiting = plan(DELTA).waiting["0"]
    assert (waiting.unit, waiting.count) == ("versions", 2)
    assert waiting.oldest_seconds == pytest.approx(86_400, abs=60)
    assert waiting.headroom_seconds == pytest.approx(29 * 86_400, abs=60)


def test_a_source_that_is_read_to_its_end_has_nothing_waiting(plan, landing):
    landing.read(0, "a.txt")
    assert plan(FILES).waiting == {"0": Waiting(Unit.FILES, 0)}
    assert plan(RATE, "run 2").waiting == {}
