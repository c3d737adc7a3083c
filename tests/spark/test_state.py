"""Queries that remember: watermarks, windows, output modes, and what the ledger says of them."""

import json
import os
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from tidegate.core.errors import SinkError, SourceError, TransformError
from tidegate.core.explanation import explain_pipeline
from tidegate.core.ledger import Decision
from tidegate.spark.runner import run_pipeline
from tidegate.spark.sinks.delta import DeltaAppend, DeltaOverwrite, DeltaUpsert

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
FILES = {
    "type": "files",
    "path": "landing",
    "format": "json",
    "schema": "word string, at timestamp",
    "max_files_per_trigger": 1,
    "malformed": "drop",
    "provenance": False,
    "watermark": {"column": "at", "delay": "10m"},
}
COUNT = {"sql": "SELECT word, count(*) AS total FROM input GROUP BY word"}
PER_HOUR = {
    "sql": "SELECT window.start AS hour, word, total FROM ("
    "SELECT window(at, '1 hour') AS window, word, count(*) AS total FROM input "
    "GROUP BY window(at, '1 hour'), word)"
}


@pytest.fixture
def land(settings):
    """Land a file of words, each with the minutes after noon that it was said at."""
    folder = settings.locate("landing")
    folder.mkdir(parents=True)
    ages = count(int(time.time()) - 1000)

    def write(name, *said):
        lines = (
            json.dumps({"word": word, "at": (NOON + timedelta(minutes=minutes)).isoformat()})
            for word, minutes in said
        )
        (folder / name).write_text("\n".join(lines))
        # Spark reads older files first, and of the same millisecond whichever it likes.
        os.utime(folder / name, times=(next(ages),) * 2)

    return write


def fail_once(monkeypatch, writer):
    """Let the first write of a sink do its work and then fail, before Spark commits."""
    write = writer.write

    def write_and_fail(self, *arguments):
        write(self, *arguments)
        monkeypatch.setattr(writer, "write", write)
        raise SinkError("The machine went away.")

    monkeypatch.setattr(writer, "write", write_and_fail)


def run_with_a_failure(runs, pipeline, settings):
    plan = runs.plan(pipeline)
    with pytest.raises(SinkError, match="went away"):
        run_pipeline(pipeline, settings, plan.run_id)
    run_pipeline(pipeline, settings, plan.run_id)
    assert runs.judge(pipeline, plan).verdict == "reached"


def test_a_count_of_words_in_complete_mode_is_all_of_it_each_time(
    runs, pipeline_of, land, rows_of, settings, monkeypatch
):
    land("a.json", ("a", 0), ("b", 0), ("a", 1))
    pipeline = pipeline_of(
        FILES, transform=COUNT, output_mode="complete", sink={"mode": "overwrite"}
    )
    fail_once(monkeypatch, DeltaOverwrite)
    run_with_a_failure(runs, pipeline, settings)
    assert rows_of("out") == [("a", 2), ("b", 1)]
    land("b.json", ("b", 2), ("c", 2))
    runs.run(pipeline)
    assert rows_of("out") == [("a", 2), ("b", 2), ("c", 1)]
    assert runs.plan(pipeline).decision is Decision.IDLE


def test_a_result_that_spark_keeps_in_an_order_of_its_own_is_written_too(
    runs, pipeline_of, land, rows_of
):
    land("a.json", ("a", 0), ("b", 5), ("a", 1))
    newest = {"sql": "SELECT word, max_by(word, at) AS said FROM input GROUP BY word"}
    runs.run(
        pipeline_of(FILES, transform=newest, output_mode="complete", sink={"mode": "overwrite"})
    )
    assert rows_of("out") == [("a", "a"), ("b", "b")]


def test_a_count_of_words_in_update_mode_is_kept_up_to_date(
    runs, pipeline_of, land, rows_of, settings, monkeypatch
):
    land("a.json", ("a", 0), ("b", 0), ("a", 1))
    sink = {"mode": "upsert", "keys": "word", "sequence": "_batch"}
    pipeline = pipeline_of(FILES, transform=COUNT, output_mode="update", sink=sink)
    fail_once(monkeypatch, DeltaUpsert)
    run_with_a_failure(runs, pipeline, settings)
    land("b.json", ("b", 2), ("c", 2))
    runs.run(pipeline)
    assert rows_of("out", "word", "total") == [("a", 2), ("b", 2), ("c", 1)]
    assert dict(rows_of("out", "word", "_batch"))["a"] < dict(rows_of("out", "word", "_batch"))["c"]


def test_windows_are_given_once_they_are_final_and_late_rows_are_told(
    runs, pipeline_of, land, rows_of, settings, monkeypatch
):
    land("a.json", ("a", 0), ("a", 30), ("b", 59))
    land("b.json", ("a", 75), ("a", 45))
    pipeline = pipeline_of(FILES, transform=PER_HOUR)
    fail_once(monkeypatch, DeltaAppend)
    run_with_a_failure(runs, pipeline, settings)
    land("c.json", ("a", 10), ("a", 200))  # the first one is too late by now
    run = runs.run(pipeline)
    expected = Counter({"a": 3, "b": 1})
    first_hour = [
        (word, total) for hour, word, total in rows_of("out") if hour.minute == hour.second == 0
    ]
    assert dict(first_hour[:2]) == expected
    assert sum(batch.metrics.late_rows for batch in run.batches) == 1
    assert all(batch.metrics.phases_ms["triggerExecution"] > 0 for batch in run.batches)
    newest = run.batches[-1].metrics
    assert newest.state_rows >= 1
    assert newest.watermark == "2026-01-31T15:10:00.000Z"


def test_how_late_rows_come_is_explained_and_a_watermark_suggested(
    runs, pipeline_of, land, settings
):
    land("a.json", *(("a", minute) for minute in range(100)))
    land("b.json", *(("a", minute) for minute in range(40, 140)))
    pipeline = pipeline_of(FILES, transform=PER_HOUR)
    runs.run(pipeline)
    land("c.json", ("a", 45))
    runs.run(pipeline)
    explained = explain_pipeline(pipeline, settings, 100)
    assert (explained.late_rows, explained.state_rows > 0) == (1, True)
    (found,) = explained.sources
    assert (found.source, found.column, found.delay, found.rows) == ("0", "at", "10m", 201)
    assert found.span_seconds == 99 * 60
    assert found.lateness_seconds["0.5"] == pytest.approx(10 * 60, abs=120)
    assert found.lateness_seconds["0.99"] == pytest.approx(59 * 60, abs=120)
    assert found.latest_seconds == 94 * 60
    assert found.suggested_delay == "100m"


def test_state_is_kept_in_rocksdb_with_the_partitions_that_it_began_with(
    runs, pipeline_of, land, settings, rows_of
):
    land("a.json", ("a", 0))
    runs.run(pipeline_of(FILES, transform=PER_HOUR))
    offsets = settings.checkpoint_of("p") / "offsets"
    conf = json.loads((offsets / "0").read_text().splitlines()[1])["conf"]
    assert conf["spark.sql.streaming.stateStore.providerClass"].endswith(
        "RocksDBStateStoreProvider"
    )
    kept = {file.suffix for file in (settings.checkpoint_of("p") / "state/0/0").iterdir()}
    assert ".changelog" in kept
    partitions = conf["spark.sql.shuffle.partitions"]
    land("b.json", ("a", 1))
    more = {"spark.sql.shuffle.partitions": int(partitions) + 3}
    runs.run(pipeline_of(FILES, transform=PER_HOUR, spark=more))
    newest = max(int(file.name) for file in offsets.iterdir() if file.name.isdigit())
    later = json.loads((offsets / str(newest)).read_text().splitlines()[1])["conf"]
    assert later["spark.sql.shuffle.partitions"] == partitions


def test_what_is_remembered_does_not_grow_with_every_short_run(runs, pipeline_of, land, settings):
    few = {
        "spark.sql.streaming.minBatchesToRetain": 2,
        "spark.sql.streaming.stateStore.minDeltasForSnapshot": 2,
    }
    pipeline = pipeline_of(FILES, transform=PER_HOUR, spark=few)
    counts = []
    for number in range(14):
        land(f"{number}.json", ("a", number * 120))
        runs.run(pipeline)
        counts.append(runs.ledger(pipeline).find_latest().batches[-1].metrics.state_rows)
    assert max(counts[-5:]) <= 2
    state = {file.name for file in (settings.checkpoint_of("p") / "state/0/0").iterdir()}
    assert any(name.endswith(".zip") for name in state), "no snapshot was made"
    assert "1.changelog" not in state, "nothing was tidied"


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"transform": COUNT}, "Spark refuses the query: .*append.*Correct the steps"),
        (
            {"output_mode": "complete", "sink": {"mode": "overwrite"}},
            "Spark refuses the query: .*omplete",
        ),
    ],
)
def test_an_output_mode_that_cannot_be_right_is_told(runs, pipeline_of, land, parts, told):
    land("a.json", ("a", 0))
    with pytest.raises(TransformError, match=told):
        runs.run(pipeline_of(FILES, **parts))


@pytest.mark.parametrize(
    ("column", "told"), [("nope", "nope is not there"), ("word", "word is string")]
)
def test_a_watermark_on_what_is_no_time_is_told(runs, pipeline_of, land, column, told):
    land("a.json", ("a", 0))
    source = FILES | {"watermark": {"column": column, "delay": "1m"}}
    with pytest.raises(SourceError, match=told):
        runs.run(pipeline_of(source))


def test_steps_that_remember_otherwise_are_refused_with_a_remedy(runs, pipeline_of, settings, land):
    land("1.json", ("tide", 0), ("gate", 1))
    runs.run(pipeline_of(FILES, transform=[PER_HOUR]))
    land("2.json", ("tide", 90))
    by_length = PER_HOUR["sql"].replace("word)", "word, length(word))")
    changed = pipeline_of(FILES, transform=[{"sql": by_length}])
    plan = runs.plan(changed)
    with pytest.raises(Exception, match="STATE"):
        run_pipeline(changed, settings, plan.run_id)
    error = runs.ledger(changed).read_attempt(plan.run_id).error
    assert "give the pipeline a new name and a new table" in error
