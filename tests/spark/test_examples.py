"""The examples on their samples: what they give is what docs/examples.md shows."""

import json
import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from demo.result import Result, read_results, take_table
from demo.sample import SAMPLES, land_sample, list_examples
from tests import examples_doc
from tidegate.core.ledger import Decision
from tidegate.core.spec.loader import load_pipeline

ROOT = Path(__file__).resolve().parents[2]
EVERYTHING = "true"
# What a stream leaves out: rows that are not in time, and results that are not final yet.
BATCH = {
    "word_count": (EVERYTHING, EVERYTHING),
    "purchases_per_hour": ("purchase_id <> 9", "hour < '2026-03-02 12:00'"),
    "click_sessions": ("user <> 'dan'", "last_click < '2026-03-02 09:00'"),
    "sensor_windows": ("at >= '2026-03-02 10:00'", EVERYTHING),
    "fraud_alerts": ("at <> '2026-03-02 12:02'", EVERYTHING),
    "weather_files": (EVERYTHING, EVERYTHING),
}


def load_example(name):
    return load_pipeline(ROOT / "pipelines", name).require()


@pytest.fixture
def warehouse(postgres, monkeypatch):
    """A database of the test's own, known as the connection `warehouse`."""
    name = f"d{uuid4().hex[:8]}"
    postgres.run(f"CREATE DATABASE {name}")
    options = postgres.options | {"dbname": name}
    monkeypatch.setenv("TIDEGATE_CONN_WAREHOUSE", json.dumps(options))
    yield
    postgres.run(f"DROP DATABASE {name}")


@pytest.mark.parametrize("name", list_examples())
def test_an_example_gives_what_its_document_shows(name, runs, settings, warehouse):
    pipeline = load_example(name)
    land_sample(name, Path(settings.data))
    run = runs.run(pipeline)
    assert len(run.batches) > 1
    assert read_results(pipeline, settings) == examples_doc.read_results_of(pipeline)
    assert runs.plan(pipeline).decision is Decision.IDLE


@pytest.mark.parametrize("name", BATCH)
def test_the_document_shows_what_one_batch_query_gives(name, spark):
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    pipeline = load_example(name)
    in_time, is_final = BATCH[name]
    for view, source in pipeline.inputs.items():
        rows = open_sample(session, source).where(in_time)
        rows.createOrReplaceTempView(view if pipeline.sources else "input")
    for step in pipeline.transform:
        session.sql(step.sql).createOrReplaceTempView("input")
    (shown,) = examples_doc.read_results_of(pipeline)
    result = take_table(shown.place, session.table("input").where(is_final).toArrow())
    assert result == leave_out(shown, "_batch")


def open_sample(session, source):
    reader = session.read.format(source.format).options(**source.options)
    if source.file_schema:
        reader = reader.schema(f"{source.file_schema}, _corrupt_record string")
    return reader.load(str(SAMPLES / source.path.removeprefix("landing/")))


def leave_out(result, column):
    """Leave out what only a stream can tell."""
    columns, *rows = (
        tuple(cell for name, cell in zip(result.columns, row, strict=True) if name != column)
        for row in (result.columns, *result.rows)
    )
    return Result(result.place, columns, tuple(rows))


def test_an_example_runs_by_its_command_and_idles_the_second_time(settings):
    places = {"TIDEGATE_DATA": settings.data, "TIDEGATE_STATE": settings.state}
    # As from a shell: without what the JVM of the tests was started with.
    shell = {key: os.environ[key] for key in ("PATH", "HOME", "JAVA_HOME") if key in os.environ}
    environment = shell | places | {"TIDEGATE_HOME": str(ROOT), "COLUMNS": "160"}

    def run():
        return subprocess.run(
            [sys.executable, "-m", "demo.example", "word_count"],
            env=environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    first = run()
    assert "landed 3 files" in first
    assert "word_count: committed batch" in first
    again = run()
    assert "landed no more files" in again
    assert "word_count: idle, " in again
    (shown,) = examples_doc.read_results_of(load_example("word_count"))
    for word, total in shown.rows:
        assert f"│ {word:<5} │ {total:<5} │" in first
        assert f"│ {word:<5} │ {total:<5} │" in again
