"""Checkpoints that Spark itself wrote, read without it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.core.checkpoint.position import SourceKind
from tidegate.core.checkpoint.progress import State, read_progress
from tidegate.core.storage import open_path

NAMED_SOURCES = {
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    "spark.sql.streaming.offsetLog.formatVersion": "2",
}


@pytest.fixture
def session(spark):
    """A session whose settings end with the test."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "2")
    return session


def drain(frame, checkpoint: Path, mode: str = "append") -> None:
    query = (
        frame.writeStream.format("noop")
        .outputMode(mode)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def rate(session, rows: int = 5):
    return session.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).load()


def test_the_command_shows_a_committed_checkpoint_as_json(session, tmp_path):
    drain(rate(session), tmp_path / "c")
    drain(rate(session), tmp_path / "c")
    command = [sys.executable, "-m", "tidegate.cli", "checkpoint", "show", str(tmp_path / "c")]
    shown = json.loads(subprocess.check_output([*command, "--json"], text=True))
    assert shown == {
        "state": "committed",
        "query_id": json.loads((tmp_path / "c" / "metadata").read_text())["id"],
        "committed_batch": 1,
        "planned_batch": 1,
        "watermark_ms": 0,
        "sources": [
            {
                "source": "0",
                "kind": "rate",
                "committed": shown["sources"][0]["planned"],
                "planned": {"offset": 10, "timestamp": shown["sources"][0]["planned"]["timestamp"]},
            }
        ],
    }
    table = subprocess.check_output(command, text=True)
    assert "committed batch" in table
    assert "row 10" in table


def test_a_batch_that_failed_is_pending(session, tmp_path):
    def fail(batch, batch_id):
        raise RuntimeError("no")

    query = (
        rate(session)
        .writeStream.foreachBatch(fail)
        .option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
        .start()
    )
    with pytest.raises(Exception, match="no"):
        query.awaitTermination()
    progress = read_progress(open_path(tmp_path / "c"))
    assert progress.state is State.PENDING
    assert (progress.committed_batch, progress.planned_batch) == (None, 0)
    assert progress.sources[0].committed is None
    assert progress.sources[0].planned["offset"] == 5


def test_two_sources_are_told_apart(session, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("1\n")
    text = session.readStream.text(str(tmp_path / "in"))
    drain(rate(session).selectExpr("cast(value as string) value").union(text), tmp_path / "c")
    kinds = [source.kind for source in read_progress(open_path(tmp_path / "c")).sources]
    assert sorted(kinds) == [SourceKind.FILES, SourceKind.RATE]


def test_a_watermark_is_read(session, tmp_path):
    frame = rate(session).withWatermark("timestamp", "1 second")
    drain(frame.groupBy("timestamp").count(), tmp_path / "c", mode="update")
    progress = read_progress(open_path(tmp_path / "c"))
    assert progress.watermark_ms is not None
    assert progress.state is State.COMMITTED


def test_state_format_two_commits_are_read(session, tmp_path):
    session.conf.set("spark.sql.streaming.stateStore.checkpointFormatVersion", "2")
    session.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    drain(rate(session).groupBy("value").count(), tmp_path / "c", mode="update")
    assert (tmp_path / "c" / "commits" / "0").read_text().startswith("v2")
    assert read_progress(open_path(tmp_path / "c")).state is State.COMMITTED


def test_named_sources_are_read_from_version_two_offsets(session, tmp_path):
    for key, value in NAMED_SOURCES.items():
        session.conf.set(key, value)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("1\n")
    drain(session.readStream.name("orders").text(str(tmp_path / "in")), tmp_path / "c")
    assert (tmp_path / "c" / "offsets" / "0").read_text().startswith("v2")
    progress = read_progress(open_path(tmp_path / "c"))
    assert progress.state is State.COMMITTED
    [source] = progress.sources
    assert (source.source, source.kind) == ("orders", SourceKind.FILES)
    assert source.committed == {"logOffset": 0}


def test_a_purged_history_is_still_read(session, tmp_path):
    session.conf.set("spark.sql.streaming.minBatchesToRetain", "3")
    (tmp_path / "in").mkdir()
    for number in range(12):
        (tmp_path / "in" / f"{number}.txt").write_text("1\n")
    frame = session.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "in"))
    drain(frame, tmp_path / "c")
    assert not (tmp_path / "c" / "offsets" / "0").exists()
    progress = read_progress(open_path(tmp_path / "c"))
    assert (progress.state, progress.committed_batch) == (State.COMMITTED, 11)
