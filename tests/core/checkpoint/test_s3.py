"""A checkpoint on S3, read through a real server of its protocol."""

import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
import s3fs
from moto.server import ThreadedMotoServer
from upath import UPath

from tidegate.core.checkpoint.progress import State, read_progress
from tidegate.core.plan import plan_run
from tidegate.core.settings import Settings
from tidegate.core.spec import Pipeline
from tidegate.core.storage import open_path
from tidegate.core.target import FilesTarget


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
