"""A checkpoint on S3, read through a real server of its protocol."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import s3fs
from moto.server import ThreadedMotoServer
from upath import UPath

from tidegate.core.checkpoint.progress import State, read_progress
from tidegate.core.condition import Covers, Verdict, judge
from tidegate.core.doctor.checkpoint import examine_checkpoint
from tidegate.core.errors import LeaseHeldError, LeaseLostError
from tidegate.core.lease import LeaseFolder, take_lease
from tidegate.core.plan import plan_run
from tidegate.core.settings import Settings
from tidegate.core.spec import Pipeline
from tidegate.core.storage import open_path
from tidegate.core.surgery.backup import Backups
from tidegate.core.surgery.copy import CheckpointCopy
from tidegate.core.surgery.rewind import Rewind
from tidegate.core.target import FilesTarget, KafkaTarget


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def lake(server, monkeypatch) -> Iterator[UPath]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3fs.S3FileSystem.clear_instance_cache()
    s3fs.S3FileSystem().mkdir("lake")
    yield open_path("s3a://lake")
    s3fs.S3FileSystem().rm("lake", recursive=True)
    s3fs.S3FileSystem.clear_instance_cache()


def test_a_checkpoint_on_s3_is_read_as_it_grows(lake, checkpoint_at):
    checkpoint = checkpoint_at(lake / "checkpoint")
    assert read_progress(checkpoint.path).state is State.NEVER_RAN
    checkpoint.metadata().offset(0, {"logOffset": 0})
    assert read_progress(checkpoint.path).state is State.PENDING
    checkpoint.commit(0)
    assert read_progress(checkpoint.path).state is State.COMMITTED


def test_the_command_shows_a_checkpoint_on_s3(lake, checkpoint_at):
    checkpoint_at(lake / "checkpoint").metadata().offset(0, {"logOffset": 0}).commit(0)
    command = [sys.executable, "-m", "tidegate.cli", "checkpoint", "show", "s3://lake/checkpoint"]
    assert "committed" in subprocess.check_output(command, text=True)


def test_a_run_is_planned_on_s3_alone(lake, tmp_path):
    environment = {"TIDEGATE_DATA": "s3a://lake/data", "TIDEGATE_STATE": "s3a://lake/state"}
    settings = Settings.from_environment(tmp_path, environment)
    for name in ("a.json", "b.json", "_hidden.json"):
        (lake / "data" / "landing" / name).write_text('{"id": 1}\n')
    source = {"type": "files", "path": "landing", "format": "json", "schema": "id long"}
    pipeline = Pipeline.model_validate(
        {
            "name": "p",
            "source": source | {"max_files_per_trigger": 1},
            "sinks": [{"type": "delta", "table": "out"}],
        }
    )
    plan = plan_run(pipeline, settings, "run 1")
    assert plan.target == FilesTarget(("lake/data/landing/a.json", "lake/data/landing/b.json"))
    assert (lake / "state/p/runs/latest.json").exists()


@pytest.fixture
def requests(monkeypatch):
    """What the store was asked, call by call."""
    asked, call = [], s3fs.S3FileSystem._call_s3

    async def count(self, method, *arguments, **more):
        asked.append(method)
        return await call(self, method, *arguments, **more)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", count)
    return asked


@pytest.mark.parametrize("batches", [3, 150])
def test_a_look_costs_as_few_requests_however_long_the_history(
    lake, checkpoint_at, requests, batches
):
    checkpoint = checkpoint_at(lake / "checkpoint").metadata()
    for batch in range(batches - 3, batches):
        checkpoint.batch(batch, {"orders": {"0": batch}})
    del requests[:]
    judgement = judge(checkpoint.path, [Covers(KafkaTarget({"orders": {"0": batches - 1}}))])
    assert judgement.verdict is Verdict.REACHED
    # Both logs are listed; then the identity, the newest commit and its offsets are read.
    assert sorted(requests) == ["get_object"] * 3 + ["list_objects_v2"] * 2


def test_just_one_of_many_gets_the_lease(lake):
    folder = LeaseFolder(lake / "state" / "lease")

    def try_to_take(number):
        try:
            return take_lease(folder, f"run {number}", seconds=30, waits=False)
        except LeaseHeldError:
            return None

    with ThreadPoolExecutor(4) as threads:
        [lease] = [lease for lease in threads.map(try_to_take, range(4)) if lease]
    lease.check()
    with pytest.raises(LeaseHeldError):
        take_lease(folder, "run other", seconds=30, waits=False)
    lease.release()
    assert take_lease(folder, "run next", seconds=30, waits=False).token == lease.token + 1
    with pytest.raises(LeaseLostError, match="taken over by run next"):
        lease.check()


def test_a_checkpoint_on_s3_is_examined_set_back_and_restored(lake, checkpoint_at):
    checkpoint = checkpoint_at(lake / "orders" / "checkpoint").batches(5)
    assert examine_checkpoint(checkpoint.path) == []
    backup = Backups(checkpoint.path).make("rewind")
    Rewind.to(checkpoint.path, 2, renews=True).plan().apply()
    assert [fault.code for fault in examine_checkpoint(checkpoint.path)] == ["change_cut_off"]
    backup.note_end(checkpoint.path)
    progress = read_progress(checkpoint.path)
    assert (progress.committed_batch, progress.query_id) != (4, checkpoint.query_id)
    assert progress.committed_batch == 2
    assert examine_checkpoint(checkpoint.path) == []
    Backups(checkpoint.path).plan_restore(backup).apply()
    assert read_progress(checkpoint.path).committed_batch == 4
    checkpoint.delete("offsets/4")
    assert [fault.code for fault in examine_checkpoint(checkpoint.path)] == ["commit_ahead"]


def test_a_query_is_moved_to_s3(lake, local_checkpoint):
    local_checkpoint.batches(3)
    target = lake / "moved" / "checkpoint"
    CheckpointCopy(local_checkpoint.path, target, is_move=True).apply()
    assert read_progress(target).query_id == local_checkpoint.query_id
    assert read_progress(target).committed_batch == 2
    assert read_progress(local_checkpoint.path).state is State.NEVER_RAN
