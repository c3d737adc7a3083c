"""Changing checkpoints by hand: shown first, backed up, undone; refused where it would be wrong."""

import json

import pytest

from tidegate.core.checkpoint.filelog import read_file_log
from tidegate.core.checkpoint.progress import State, read_progress
from tidegate.core.doctor.checkpoint import examine_checkpoint
from tidegate.core.errors import LeaseHeldError, SurgeryError
from tidegate.core.lease import LeaseFolder, hold_lease
from tidegate.core.ledger import Decision, Ledger
from tidegate.core.plan import plan_run
from tidegate.core.spec.loader import load_pipeline
from tidegate.core.storage import find_files, open_path, read_bytes
from tidegate.core.surgery.backup import Backups
from tidegate.core.surgery.change import Change
from tidegate.core.surgery.rewind import Rewind

CHECKED = "--sinks-are-checked"


@pytest.fixture
def run(invoke):
    """Run `tidegate checkpoint`, and insist that it ends well."""

    def run(*arguments, code=0):
        result = invoke("checkpoint", *map(str, arguments))
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code
        return result.stdout

    return run


@pytest.fixture
def sink(deployment, table_at):
    return table_at(deployment.locate("out/orders"))


@pytest.fixture
def orders(deployment, add_files_spec, checkpoint_of, sink):
    """A pipeline of 25 batches, whose table holds them all, planned once by its ledger."""
    add_files_spec("orders")
    landing = deployment.locate("landing")
    landing.mkdir(parents=True)
    checkpoint = checkpoint_of("orders")
    for batch in range(25):
        (landing / f"{batch}.json").write_text("x")
        modified = int((landing / f"{batch}.json").stat().st_mtime_ns / 1_000_000)
        path = str(landing / f"{batch}.json")
        checkpoint.log_files(batch, path, modified_ms=modified).batch(batch)
    for batch in (20, 21, 24):
        sink.append(app_id=f"{checkpoint.query_id}:main", batch=batch)
    assert plan(deployment).decision is Decision.IDLE
    return checkpoint


def plan(deployment, name="orders"):
    return plan_run(load_pipeline(deployment.pipelines, name).require(), deployment, "run")


def snapshot(checkpoint):
    names = (name for name in find_files(checkpoint.path) if not name.endswith(".crc"))
    return {name: read_bytes(checkpoint.path / name) for name in names}


class TestRewind:
    def test_one_that_delta_would_skip_is_refused_with_the_way_to_do_it(self, orders, run):
        before = snapshot(orders)
        with pytest.raises(SurgeryError) as refused:
            run("rewind", "orders", "--to-batch", 21)
        told = str(refused.value)
        assert "Delta would pass over batches 22 to 24 without a word" in told
        assert "TO VERSION AS OF 1" in told
        assert "--new-query-id" in told
        assert snapshot(orders) == before

    @pytest.mark.usefixtures("orders")
    def test_rows_that_are_still_there_would_be_doubled(self, run):
        with pytest.raises(SurgeryError, match="still has the rows of batches 22 to 24"):
            run("rewind", "orders", "--to-batch", 21, "--new-query-id")

    def test_after_the_table_is_restored_it_is_done_and_can_be_gone_on_from(
        self, orders, run, sink, deployment
    ):
        restored = {"timestamp": 1, "operation": "RESTORE", "operationParameters": {"version": "1"}}
        newest = json.dumps({"commitInfo": restored})
        (sink.log / f"{3:020}.json").write_text(newest)
        run("rewind", "orders", "--to-batch", 21, "--new-query-id")
        progress = read_progress(orders.path)
        assert (progress.state, progress.committed_batch) == (State.COMMITTED, 21)
        assert progress.query_id != orders.query_id
        assert examine_checkpoint(orders.path) == []
        assert [file.log_offset for file in read_file_log(orders.path, "0")] == list(range(22))
        latest = Ledger.beside(deployment.state_of("orders")).find_latest()
        assert latest.plan.baseline.query_id == progress.query_id
        planned = plan(deployment)
        assert (planned.decision, planned.reason) == (Decision.RUN, "3 files to read")

    def test_a_dry_run_shows_the_files_and_changes_none(self, orders, run):
        before = snapshot(orders)
        told = run(
            *("rewind", "orders", "--to-batch", 21, "--new-query-id", "--accept-duplicates"),
            "--dry-run",
        )
        for batch in (22, 23, 24):
            assert f"delete {orders.path}/offsets/{batch}\n" in told
            assert f"delete {orders.path}/commits/{batch}\n" in told
            assert f"delete {orders.path}/sources/0/{batch}\n" in told
        assert f"write  {orders.path}/metadata (" in told
        assert told.endswith("Nothing was changed.\n")
        assert snapshot(orders) == before

    def test_a_compacted_log_of_files_is_written_anew(self, orders, run):
        for number in range(19):
            name = f"sources/0/{number}" + (".compact" if number == 9 else "")
            orders.delete(name)
        run("rewind", orders.path, "--to-batch", 13, CHECKED)
        assert [file.log_offset for file in read_file_log(orders.path, "0")] == list(range(14))
        assert examine_checkpoint(orders.path) == []
        names = set(find_files(orders.path / "sources" / "0"))
        kept = {name for name in names if not name.startswith(".")}
        assert kept == {"9.compact", "10", "11", "12", "13"}

    def test_it_is_undone(self, orders, run):
        before = snapshot(orders)
        run("rewind", orders.path, "--to-batch", 13, CHECKED)
        assert snapshot(orders) != before
        run("undo", orders.path)
        assert snapshot(orders) == before
        run("undo", orders.path)
        assert read_progress(orders.path).committed_batch == 13

    def test_it_is_not_undone_once_a_run_has_gone_on(self, orders, run):
        run("rewind", orders.path, "--to-batch", 13, CHECKED)
        orders.batch(14)
        with pytest.raises(SurgeryError, match="a run has gone on since"):
            run("undo", orders.path)

    def test_a_position_is_found_in_the_log(self, checkpoint_of, run):
        checkpoint = checkpoint_of("k")
        for batch, end in enumerate([10, 20, 30]):
            checkpoint.batch(batch, {"orders": {"0": end}})
        position = '{"orders": {"0": 25}}'
        told = run("rewind", checkpoint.path, "--to-position", position, CHECKED)
        assert "Batch 1 is the newest that ends there or before." in told
        assert read_progress(checkpoint.path).committed_batch == 1
        with pytest.raises(SurgeryError, match="No batch"):
            run("rewind", checkpoint.path, "--to-position", '{"orders": {"0": 5}}', CHECKED)
        with pytest.raises(SurgeryError, match="is not JSON"):
            run("rewind", checkpoint.path, "--to-position", "{", CHECKED)

    @pytest.mark.parametrize("position", ["5", "null", "[]", '"orders"'])
    def test_a_position_of_another_kind_is_told(self, orders, run, position):
        assert orders
        with pytest.raises(SurgeryError, match="No batch that the checkpoint keeps"):
            run("rewind", "orders", "--to-position", position)

    def test_whoever_looks_meanwhile_never_sees_a_commit_too_many(self, orders, monkeypatch):
        seen = []
        unlink = type(orders.path).unlink

        def watch(file, *arguments, **options):
            seen.append(read_progress(orders.path).state)
            return unlink(file, *arguments, **options)

        change = Rewind.to(orders.path, 20, renews=True).plan()
        monkeypatch.setattr(type(orders.path), "unlink", watch)
        change.apply()
        assert set(seen) <= {State.COMMITTED, State.PENDING}

    @pytest.mark.parametrize("batch", [25, 99])
    def test_a_batch_that_is_not_there_is_refused(self, orders, run, batch):
        with pytest.raises(SurgeryError, match="It keeps batches 0 to 24"):
            run("rewind", orders.path, "--to-batch", batch, CHECKED)

    def test_a_path_does_not_tell_the_sinks(self, orders, run):
        with pytest.raises(SurgeryError, match="does not tell what the query writes to"):
            run("rewind", orders.path, "--to-batch", 3)

    def test_one_of_two_must_be_named(self, orders, run):
        with pytest.raises(SurgeryError, match="one of the two"):
            run("rewind", orders.path)

    def test_state_that_is_gone_is_refused_and_later_state_is_deleted(self, checkpoint_of, run):
        checkpoint = checkpoint_of("s").batches(4)
        checkpoint.put(
            "state/0/_metadata/metadata",
            b'v1\n{"operatorInfo":{"operatorId":0,"operatorName":"stateStoreSave"},"stateStoreInfo":'
            b'[{"storeName":"default","numColsPrefixKey":0,"numPartitions":1}]}',
        )
        checkpoint.put("state/0/0/2.snapshot", b"x")
        for version in (3, 4):
            checkpoint.put(f"state/0/0/{version}.delta", b"x")
        with pytest.raises(SurgeryError, match="its state of batch 0 is not there any more"):
            run("rewind", checkpoint.path, "--to-batch", 0, CHECKED)
        run("rewind", checkpoint.path, "--to-batch", 2, CHECKED)
        assert {"0/0/2.snapshot", "0/0/3.delta"} <= set(find_files(checkpoint.path / "state"))
        assert "0/0/4.delta" not in find_files(checkpoint.path / "state")


class TestSkip:
    def test_a_pending_batch_is_left_out_and_its_range_is_written_down(
        self, orders, run, deployment
    ):
        orders.log_files(25, "/landing/25.json").offset(25, {"logOffset": 25})
        run("skip", "orders", "--dry-run")
        assert read_progress(orders.path).state is State.PENDING
        run("skip", "orders")
        assert read_progress(orders.path).committed_batch == 25
        written = json.loads((deployment.state_of("orders") / "skips" / "25.json").read_text())
        assert written["sources"] == [
            {"description": "0", "startOffset": {"logOffset": 24}, "endOffset": {"logOffset": 25}}
        ]
        assert plan(deployment).decision is Decision.IDLE
        run("undo", "orders")
        assert read_progress(orders.path).state is State.PENDING

    @pytest.mark.usefixtures("orders")
    def test_without_a_pending_batch_there_is_nothing_to_leave_out(self, run):
        with pytest.raises(SurgeryError, match="No batch is pending"):
            run("skip", "orders")

    def test_a_query_that_remembers_needs_every_batch(self, orders, run):
        orders.log_files(25, "/landing/25.json").offset(25, {"logOffset": 25})
        orders.put(
            "state/0/_metadata/metadata",
            b'v1\n{"operatorInfo":{"operatorId":0,"operatorName":"dedupe"},"stateStoreInfo":[]}',
        )
        with pytest.raises(SurgeryError, match="the query remembers rows"):
            run("skip", "orders")


class TestCopies:
    @pytest.mark.usefixtures("orders")
    def test_a_fork_goes_on_from_the_same_place_as_another_query(
        self, run, deployment, add_files_spec
    ):
        run("fork", "orders", "orders_v2", "--dry-run")
        assert not deployment.checkpoint_of("orders_v2").exists()
        run("fork", "orders", "orders_v2")
        one, other = (read_progress(deployment.checkpoint_of(n)) for n in ("orders", "orders_v2"))
        assert one.query_id != other.query_id
        assert (one.committed_batch, one.sources) == (other.committed_batch, other.sources)
        assert examine_checkpoint(deployment.checkpoint_of("orders_v2")) == []
        add_files_spec("orders_v2")
        assert plan(deployment, "orders_v2").decision is Decision.IDLE

    def test_a_moved_query_is_the_same_with_its_ledger(self, orders, run, tmp_path):
        before = snapshot(orders)
        target = f"memory://{tmp_path.name}/orders/checkpoint"
        run("move", "orders", target)
        assert read_progress(orders.path).state is State.NEVER_RAN
        moved = open_path(target)
        kept = {n: read_bytes(moved / n) for n in find_files(moved) if not n.endswith(".crc")}
        assert kept == before
        assert Ledger.beside(moved.parent).find_latest()

    def test_a_move_is_undone(self, orders, run, tmp_path):
        before = snapshot(orders)
        target = tmp_path / "elsewhere" / "checkpoint"
        run("move", "orders", target)
        run("undo", "orders")
        assert snapshot(orders) == before
        assert find_files(open_path(str(target))) == {}
        assert not list((tmp_path / "elsewhere" / "runs").rglob("*.json"))

    def test_a_fork_is_undone_as_long_as_it_has_not_gone_on(self, orders, run, checkpoint_of):
        before = snapshot(orders)
        run("fork", "orders", "orders_v2")
        copy = checkpoint_of("orders_v2")
        copy.offset(25)
        with pytest.raises(SurgeryError, match="a run has gone on since"):
            run("undo", "orders")
        copy.delete("offsets/25")
        run("undo", "orders")
        assert snapshot(orders) == before
        assert find_files(copy.path) == {}

    def test_a_place_that_is_taken_is_refused(self, orders, run, tmp_path):
        (tmp_path / "taken").mkdir()
        (tmp_path / "taken" / "file").write_text("")
        with pytest.raises(SurgeryError, match="is not empty"):
            run("fork", orders.path, tmp_path / "taken")

    def test_a_difference_is_told(self, orders, run, checkpoint_of):
        checkpoint_of("other").batches(3)
        told = json.loads(run("diff", orders.path, checkpoint_of("other").path, "--json", code=1))
        assert told["committed batch"] == ["24", "2"]
        assert told["source 0, committed"] == ["file log 24", "file log 2"]
        assert run("diff", orders.path, orders.path) == "They do not differ.\n"


class TestBackups:
    def test_a_backup_is_restored_by_its_name(self, orders, run):
        name = run("backup", orders.path).partition(":")[0]
        before = snapshot(orders)
        orders.write("offsets/24", "")
        orders.delete("metadata")
        run("restore", "orders", name)
        assert snapshot(orders) == before
        assert name in run("backups", orders.path)

    def test_one_that_delta_would_skip_is_refused(self, orders, run, sink):
        name = run("backup", "orders").partition(":")[0]
        orders.log_files(25, "/landing/25.json").batch(25)
        sink.append(app_id=f"{orders.query_id}:main", batch=25)
        with pytest.raises(SurgeryError, match="Delta would pass over batches 25 to 25"):
            run("restore", "orders", name)

    @pytest.mark.parametrize("is_broken", [False, True])
    def test_a_sink_that_cannot_be_asked_is_not_passed_over_because_the_checkpoint_is_broken(
        self, orders, run, deployment, is_broken
    ):
        spec = deployment.pipelines / "orders.yaml"
        jdbc = "{type: jdbc, connection: db, table: orders}"
        spec.write_text(spec.read_text().replace("{type: delta, table: out/orders}", jdbc))
        name = run("backup", "orders").partition(":")[0]
        orders.log_files(25, "/landing/25.json").batch(25)
        if is_broken:
            orders.write("offsets/25", "")
        with pytest.raises(SurgeryError, match="would pass over them without a word"):
            run("restore", "orders", name)
        run("restore", "orders", name, CHECKED)
        assert read_progress(orders.path).committed_batch == 24

    def test_one_of_a_table_that_was_restored_is_gone_on_from_as_another_query(
        self, orders, run, sink, deployment
    ):
        name = run("backup", "orders").partition(":")[0]
        orders.log_files(25, "/landing/25.json").batch(25)
        sink.append(app_id=f"{orders.query_id}:main", batch=25)
        sink.append().restore(4, to=2)
        run("restore", "orders", name, "--new-query-id")
        progress = read_progress(orders.path)
        assert progress.committed_batch == 24
        assert progress.query_id != orders.query_id
        assert plan(deployment).decision is Decision.IDLE

    def test_an_earlier_identity_is_not_taken_up_again_where_the_table_was_set_back(
        self, orders, run, sink
    ):
        sink.append().restore(3, to=1)  # to batch 21
        run("rewind", "orders", "--to-batch", 21, "--new-query-id")
        orders.log_files(22, "/landing/22.json").batch(22)
        (backup,) = [line for line in run("backups", "orders").splitlines() if "rewind" in line]
        name = backup.split("│")[1].strip()
        with pytest.raises(SurgeryError, match="was itself set back and has batches up to 21"):
            run("restore", "orders", name)

    def test_one_that_holds_batches_of_the_later_identity_is_told(self, orders, run, sink):
        sink.append().restore(3, to=1)
        run("rewind", "orders", "--to-batch", 21, "--new-query-id")
        later = read_progress(orders.path).query_id
        sink.append(app_id=f"{later}:main", batch=22)
        orders.log_files(22, "/landing/22.json").batch(22)
        name = Backups(orders.path).list_all()[-1].name
        with pytest.raises(SurgeryError, match=f"holds batches of {later} up to 22"):
            run("restore", "orders", name)

    def test_each_checkpoint_of_a_folder_has_its_own(self, checkpoint_at, run, tmp_path):
        one, other = (checkpoint_at(open_path(str(tmp_path / n))) for n in ("orders", "clicks"))
        before = snapshot(one.batches(5)), snapshot(other.batches(5))
        for checkpoint in (one, other):
            run("rewind", checkpoint.path, "--to-batch", 2, CHECKED)
        run("undo", one.path)
        assert snapshot(one) == before[0]
        assert read_progress(other.path).committed_batch == 2
        run("undo", other.path)
        assert snapshot(other) == before[1]

    def test_a_change_that_was_cut_off_is_told_and_undone(self, orders, run, deployment):
        before = snapshot(orders)
        change = Rewind.to(orders.path, 21, renews=True).plan()
        Backups(orders.path).make("rewind")
        Change(change.folder, change.writes).apply()
        assert "did not come to its end" in plan(deployment).reason
        run("undo", "orders")
        assert snapshot(orders) == before
        assert plan(deployment).decision is Decision.IDLE

    def test_a_damaged_backup_is_refused(self, orders, run):
        name = run("backup", orders.path).partition(":")[0]
        copy = orders.path.parent / "backups" / name / "files" / "checkpoint" / "offsets" / "3"
        copy.write_bytes(b"v1")
        with pytest.raises(SurgeryError, match="is damaged"):
            run("restore", orders.path, name)

    def test_one_that_is_not_there_is_told_with_those_that_are(self, orders, run):
        name = run("backup", orders.path).partition(":")[0]
        with pytest.raises(SurgeryError, match=name):
            run("restore", orders.path, "other")


@pytest.mark.parametrize(
    "command",
    [
        ("rewind", "--to-batch", 3, CHECKED),
        ("skip",),
        ("fork", "/tmp/never"),
        ("move", "/tmp/never"),
        ("backup",),
    ],
)
def test_nothing_is_done_while_a_driver_holds_the_lease(orders, run, command):
    name, *rest = command
    with (
        hold_lease(LeaseFolder.beside(orders.path), "run now, try 1", seconds=30),
        pytest.raises(LeaseHeldError, match="run now, try 1"),
    ):
        run(name, orders.path, *rest)
