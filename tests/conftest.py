"""What all tests share: settings below a temporary folder, and checkpoints as Spark writes them."""

from __future__ import annotations

import json
import os
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote
from uuid import uuid4

import hypothesis
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from upath import UPath

from demo.broker import Broker
from tests.delta_table import DeltaTableBuilder
from tests.kafka_cluster import Cluster
from tests.postgres import PostgresServer
from tidegate.core.settings import Settings
from tidegate.core.storage import is_local, list_names

# The same examples each time: a test that fails in CI fails on any desk.
hypothesis.settings.register_profile("tidegate", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("tidegate")

ROOT = Path(__file__).resolve().parents[1]

LEAN_JVM = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
"""For JVMs that live for seconds: what the second compiler does for them costs more than it gives."""
os.environ.update(LEAN_JVM)
QUERY_ID = "0deb1b20-c45a-4899-a0d5-625287cc67aa"
TABLE_ID = "3cd190fd-124c-4077-9798-1b383cdebdbc"
_CONF = {
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    "spark.sql.shuffle.partitions": "2",
}
_COMMIT_EXTRAS: dict[int, dict[str, Any]] = {
    1: {},
    2: {"stateUniqueIds": {"0": [["25c480b3-7449-48ff-b0b1-81203b4a2dd1"]]}},
    3: {
        "sinkMetadataMap": {
            "main": {
                "sinkName": "main",
                "commitOffset": "-",
                "providerName": "org.apache.spark.sql.execution.streaming.sinks.FileStreamSink",
                "apiVersion": "DSv1",
                "isActive": True,
            }
        }
    },
}


class CheckpointBuilder:
    """Writes a checkpoint as Spark 4.2 does, file by file, and damages it as tests ask."""

    query_id = QUERY_ID
    table_id = TABLE_ID

    def __init__(self, path: UPath) -> None:
        self.path = path
        self._logged: list[dict[str, Any]] = []

    def metadata(self, query_id: str = QUERY_ID) -> Self:
        """Name the query, as `start()` does before anything else."""
        return self.write("metadata", _to_json({"id": query_id}))

    def offset(self, batch: int, *positions: Any, version: int = 1, watermark_ms: int = 0) -> Self:
        """Plan a batch, by default the next entry of a file source; None is a source without."""
        ends = [_to_json(end) if end is not None else "-" for end in positions or self._next(batch)]
        return self._plan(batch, ends, version=version, watermark_ms=watermark_ms)

    def named_offset(self, batch: int, positions: dict[str, Any]) -> Self:
        """Plan a batch in the format of named sources, version 2."""
        ends = [f"{name}:{_to_json(end)}" for name, end in positions.items()]
        return self._plan(batch, ends, version=2, sourceMetadataInfo={})

    def commit(self, batch: int, *, version: int = 1, watermark_ms: int = 0) -> Self:
        """Commit a batch."""
        body = {"nextBatchWatermarkMs": watermark_ms} | _COMMIT_EXTRAS.get(version, {})
        return self.write(f"commits/{batch}", f"v{version}\n{_to_json(body)}")

    def batch(self, batch: int, *positions: Any) -> Self:
        """Plan a batch and commit it."""
        return self.offset(batch, *positions).commit(batch)

    def batches(self, count: int) -> Self:
        """Run a file source for as many batches, each of one file."""
        for batch in range(count):
            self.log_files(batch, f"/landing/{batch}.json").batch(batch)
        return self

    def log_files(
        self, log_offset: int, *paths: str, modified_ms: int = 1000, source: str = "0"
    ) -> Self:
        """Log files of a file source, compacted at each tenth offset as Spark does."""
        entries = [
            {"path": to_spark_url(path), "timestamp": modified_ms, "batchId": log_offset}
            for path in paths
        ]
        self._logged += entries
        is_compact = log_offset % 10 == 9
        name = f"sources/{source}/{log_offset}{'.compact' if is_compact else ''}"
        lines = map(_to_json, self._logged if is_compact else entries)
        return self.write(name, "\n".join(["v1", *lines]))

    def litter(self, folder: str, batch: int) -> Self:
        """Leave what a killed driver leaves: a temporary file, and a checksum without its file."""
        self.put(f"{folder}/.{batch}.{uuid4()}.tmp", b"v1\n{}")
        return self.put(f"{folder}/.{batch}.crc", _sum(b"v1\n{}"))

    def purge(self, below: int) -> Self:
        """Drop the pairs below a batch, as planning a later one does."""
        for folder in ("offsets", "commits"):
            for name in list_names(self.path / folder):
                if name.isdigit() and int(name) < below:
                    self.delete(f"{folder}/{name}")
        return self

    def read(self, name: str) -> bytes:
        """Read a file of the checkpoint."""
        return (self.path / name).read_bytes()

    def write(self, name: str, content: str | bytes) -> Self:
        """Write a file of the checkpoint, with the checksum that a local file system adds."""
        data = content.encode() if isinstance(content, str) else content
        self.put(name, data)
        return self.put(_name_checksum(name), _sum(data)) if is_local(self.path) else self

    def put(self, name: str, data: bytes) -> Self:
        """Write bytes and nothing beside them."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        return self

    def cut(self, name: str, size: int) -> Self:
        """Truncate a file, its checksum left as it was."""
        return self.put(name, self.read(name)[:size])

    def delete(self, *names: str) -> Self:
        """Delete files or folders, with their checksums."""
        for name in names:
            target = self.path / name
            if target.is_dir():
                target.fs.rm(target.path, recursive=True)
                continue
            target.unlink()
            if is_local(target):
                (self.path / _name_checksum(name)).unlink(missing_ok=True)
        return self

    @staticmethod
    def delta(version: int, *, index: int = -1, starting: bool = False) -> dict[str, Any]:
        """Spell a position in a Delta table."""
        return {
            "sourceVersion": 1,
            "reservoirId": TABLE_ID,
            "reservoirVersion": version,
            "index": index,
            "isStartingVersion": starting,
        }

    @staticmethod
    def _next(batch: int) -> tuple[dict[str, int]]:
        return ({"logOffset": batch},)

    def _plan(
        self, batch: int, ends: list[str], *, version: int, watermark_ms: int = 0, **more: Any
    ) -> Self:
        if not (self.path / "metadata").exists():
            self.metadata()
        header = {
            "batchWatermarkMs": watermark_ms,
            "batchTimestampMs": 1794800689036 + batch,
            "conf": _CONF,
        }
        return self.write(
            f"offsets/{batch}", "\n".join([f"v{version}", _to_json(header | more), *ends])
        )


def to_spark_url(path: str) -> str:
    """Spell a local path as Java's URI does: ASCII that is not legal is quoted, the rest is kept."""
    # Taken from what Spark 4.2 logged for files with these names.
    kept = (c if ord(c) > 127 else quote(c, safe="/+&=;,~'!@$()*:") for c in path)
    return "file://" + "".join(kept)


def _to_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _name_checksum(name: str) -> str:
    folder, separator, file = name.rpartition("/")
    return f"{folder}{separator}.{file}.crc"


def _sum(data: bytes) -> bytes:
    chunks = (data[start : start + 512] for start in range(0, len(data), 512))
    sums = b"".join(struct.pack(">I", zlib.crc32(chunk)) for chunk in chunks)
    return b"crc\0" + struct.pack(">I", 512) + sums


@pytest.fixture(autouse=True)
def _empty_memory() -> Iterator[None]:
    yield
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


@pytest.fixture(autouse=True)
def _own_modules() -> Iterator[None]:
    """Forget the modules of a test's own folders: the next one may name another the same."""
    before = sys.path.copy()
    yield
    folders = [Path(entry) for entry in sys.path if entry not in before]
    sys.path[:] = before
    if not folders:
        return
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    for name, file in files.items():
        if file and any(Path(file).is_relative_to(folder) for folder in folders):
            del sys.modules[name]


@pytest.fixture
def settings(tmp_path) -> Settings:
    """Settings of a deployment below a temporary folder."""
    return Settings(
        home=tmp_path,
        pipelines=tmp_path / "pipelines",
        data=str(tmp_path / "data"),
        state=str(tmp_path / "state"),
        jars=tmp_path / "jars",
    )


@pytest.fixture(params=["local", "memory"])
def store(request, tmp_path) -> UPath:
    """An empty folder, once on the local file system and once on an fsspec store."""
    return UPath(tmp_path) if request.param == "local" else UPath(f"memory:///{uuid4().hex}")


@pytest.fixture
def checkpoint(store) -> CheckpointBuilder:
    """A checkpoint yet to be written."""
    return CheckpointBuilder(store / "checkpoint")


@pytest.fixture
def local_checkpoint(tmp_path) -> CheckpointBuilder:
    """A checkpoint yet to be written, on the local file system."""
    return CheckpointBuilder(UPath(tmp_path) / "checkpoint")


@pytest.fixture(scope="session")
def new_checkpoint() -> Callable[[], CheckpointBuilder]:
    """Make any number of checkpoints, for tests that need a new one for each example."""
    return lambda: CheckpointBuilder(UPath(f"memory:///{uuid4().hex}/checkpoint"))


@pytest.fixture
def checkpoint_at() -> Callable[[UPath], CheckpointBuilder]:
    """Write a checkpoint at a path of the test's choice."""
    return CheckpointBuilder


@pytest.fixture
def checkpoint_of(settings) -> Callable[[str], CheckpointBuilder]:
    """Write the checkpoint of a pipeline."""
    return lambda pipeline: CheckpointBuilder(settings.checkpoint_of(pipeline))


@pytest.fixture
def table_at() -> type[DeltaTableBuilder]:
    """Write a Delta table at a path."""
    return DeltaTableBuilder


@pytest.fixture(scope="session")
def kafka(tmp_path_factory) -> Iterator[Cluster]:
    """A real broker, one for all tests."""
    broker = Broker(tmp_path_factory.mktemp("kafka"), ROOT / "jars" / "broker")
    broker.start()
    yield Cluster(broker)
    broker.stop()


@pytest.fixture
def kafka_default(kafka, monkeypatch) -> Cluster:
    """The broker, known to every process as the connection that specs use by default."""
    monkeypatch.setenv("TIDEGATE_CONN_KAFKA_DEFAULT", json.dumps(kafka.options))
    return kafka


@pytest.fixture
def after_listing(monkeypatch) -> Callable[..., None]:
    """Let Spark go on right after a folder was listed: the real listing, then an action, once."""

    def arrange(module: Any, folder: str, *actions: Callable[[], Any]) -> None:
        list_names, waiting = module.list_names, list(actions)

        def list_and_act(path: UPath) -> list[str]:
            names = list_names(path)
            if path.name == folder and waiting:
                waiting.pop(0)()
            return names

        monkeypatch.setattr(module, "list_names", list_and_act)

    return arrange


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real PostgreSQL server, one for all tests."""
    server = PostgresServer()
    server.start()
    yield server
    server.remove()
