"""What the doctor says of a checkpoint is what Spark then does: each damage is tried on the real thing."""

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import functions as F  # noqa: N812
from upath import UPath

from tidegate.core.doctor.checkpoint import examine_checkpoint
from tidegate.core.doctor.fault import list_errors

BATCHES = 3
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@pytest.fixture(scope="module")
def landing(tmp_path_factory):
    folder = tmp_path_factory.mktemp("landing")
    for number in range(BATCHES):
        land(folder, number)
    return folder


def land(folder, number):
    rows = ({"id": key, "at": f"2026-01-01T00:0{number}:0{key}Z"} for key in range(5))
    (folder / f"{number}.json").write_text("\n".join(map(json.dumps, rows)))


@pytest.fixture(scope="module")
def session(spark):
    session = spark.newSession()
    for key, value in {
        "spark.sql.shuffle.partitions": "2",
        # Whether there is one depends on the order of the files: one batch a file is enough here.
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }.items():
        session.conf.set(key, value)
    return session


def drain(session, landing, checkpoint, *, counts):
    """Run a query to its end."""
    rows = session.readStream.schema("id long, at timestamp").option("maxFilesPerTrigger", 1)
    rows = rows.json(str(landing))
    if counts:
        rows = (
            rows.withWatermark("at", "1 minute").groupBy("id", F.window("at", "1 minute")).count()
        )
    stream = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    stream.trigger(availableNow=True).start().awaitTermination()


@pytest.fixture(scope="module", params=["stateless", "stateful"])
def sound(request, session, landing, tmp_path_factory):
    """A checkpoint that Spark wrote, of three batches."""
    checkpoint = tmp_path_factory.mktemp(request.param) / "checkpoint"
    drain(session, landing, checkpoint, counts=request.param == "stateful")
    return checkpoint


@pytest.fixture
def checkpoint(sound, tmp_path):
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(sound, tmp_path / "checkpoint"))


@pytest.fixture
def go_on(session, landing, checkpoint):
    """Let Spark go on from the checkpoint, with one file more; return what it says, if it fails."""

    def run():
        new = landing / "new.json"
        shutil.copy(landing / "0.json", new)
        try:
            drain(session, landing, checkpoint, counts=(checkpoint / "state").exists())
        except Exception as error:
            return str(error)
        finally:
            new.unlink()
        return None

    return run


def delete(checkpoint, *names):
    for name in names:
        file = checkpoint / name
        if file.is_dir():
            shutil.rmtree(file)
            continue
        file.unlink()
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def put(checkpoint, name, text):
    delete(checkpoint, name)
    (checkpoint / name).write_text(text)


DAMAGES = {
    "commit_ahead": (lambda c: delete(c, "offsets/2"), "CONCURRENT_STREAM_LOG_UPDATE"),
    "offsets_missing": (lambda c: delete(c, "offsets"), "assertion failed"),
    "start_missing": (lambda c: delete(c, "offsets/1"), "batch 1 doesn't exist"),
    "metadata_missing": (
        lambda c: delete(c, "metadata"),
        "STREAMING_CHECKPOINT_MISSING_METADATA_FILE",
    ),
    "metadata_corrupt": (lambda c: put(c, "metadata", ""), "No content to map"),
    "commit_corrupt": (lambda c: put(c, "commits/2", ""), "Incomplete log file"),
    "offset_corrupt": (lambda c: put(c, "offsets/2", ""), "Incomplete log file"),
    "offset_corrupt, bare": (lambda c: put(c, "offsets/2", "v1"), "next on empty iterator"),
    "offset_corrupt, half": (
        lambda c: put(c, "offsets/2", (c / "offsets/2").read_text()[:100]),
        "Unexpected end-of-input",
    ),
    "unsupported_version": (lambda c: put(c, "commits/2", "v9\n{}"), "LOG_VERSION"),
    "source_count_changed": (
        lambda c: put(c, "offsets/2", (c / "offsets/2").read_text() + '\n{"logOffset":2}'),
        "There are [2] sources in the checkpoint offsets and now there are [1]",
    ),
    "file_log_corrupt": (lambda c: delete(c, "sources/0/2", "commits/2"), "doesn't exist"),
    "orphan_checksum": (
        lambda c: (c / "commits/2").unlink(),
        "Multiple streaming queries are concurrently using",
    ),
}
HARMLESS = {
    "offsets_gap": lambda c: delete(c, "offsets/0"),
    "commits_gap": lambda c: delete(c, "commits/0"),
    "pending": lambda c: delete(c, "commits/2"),
    "commits_missing": lambda c: delete(c, "commits"),
    "temporary_file": lambda c: (c / "offsets/.3.0deb1b20-c45a.tmp").write_text("v1"),
    "checksum_mismatch": lambda c: (c / "commits/2").write_text("v1"),
}


def test_a_checkpoint_of_spark_is_sound(sound):
    assert examine_checkpoint(UPath(sound)) == []


@pytest.mark.parametrize("case", DAMAGES)
def test_spark_fails_as_the_doctor_says(checkpoint, go_on, case):
    damage, told = DAMAGES[case]
    damage(checkpoint)
    errors = list_errors(examine_checkpoint(UPath(checkpoint)))
    assert case.partition(",")[0] in [error.code for error in errors]
    assert told in (go_on() or "it went on")


@pytest.mark.parametrize("case", HARMLESS)
def test_spark_goes_on_where_the_doctor_finds_no_error(checkpoint, go_on, case):
    HARMLESS[case](checkpoint)
    faults = examine_checkpoint(UPath(checkpoint))
    assert case in [fault.code for fault in faults]
    assert list_errors(faults) == []
    assert go_on() is None


@pytest.mark.parametrize("sound", ["stateful"], indirect=True)
@pytest.mark.parametrize("size", [None, 0, 20])
def test_state_that_cannot_be_loaded_is_told_before_spark_fails(checkpoint, go_on, size):
    newest = checkpoint / "state/0/1/3.changelog"
    data = newest.read_bytes()
    delete(checkpoint, "state/0/1/3.changelog")
    if size is not None:
        newest.write_bytes(data[:size])
    [error] = list_errors(examine_checkpoint(UPath(checkpoint)))
    assert error.code == ("state_missing" if size is None else "state_corrupt")
    assert go_on() is not None
