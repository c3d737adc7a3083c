"""Files, Python functions and any format of Spark's as sinks."""

import json

import pytest

from tidegate.core.errors import SinkError, TransformError
from tidegate.core.ledger import Decision
from tidegate.spark.runner import run_pipeline
from tidegate.spark.sinks.files import FilesWriter

FILES = {
    "type": "files",
    "path": "landing",
    "format": "json",
    "schema": "id long, kind string",
    "max_files_per_trigger": 1,
    "malformed": "drop",
    "provenance": False,
}


@pytest.fixture
def land(settings):
    """Land a file of rows (id, kind)."""
    folder = settings.locate("landing")
    folder.mkdir(parents=True)

    def write(name, *rows):
        lines = (json.dumps({"id": number, "kind": kind}) for number, kind in rows)
        (folder / name).write_text("\n".join(lines))

    return write


@pytest.fixture
def add_module(settings):
    """Write a module of functions beside the specs."""
    settings.pipelines.mkdir(parents=True, exist_ok=True)
    return lambda name, code: (settings.pipelines / f"{name}.py").write_text(code)


def die_after(method):
    """Do what a method does, then go away before Spark can commit."""

    def do_and_die(self, *arguments):
        method(self, *arguments)
        raise SinkError("The machine went away.")

    return do_and_die


@pytest.mark.parametrize("file_format", ["parquet", "json", "csv", "orc"])
def test_a_folder_gets_each_batch_once(
    runs, spark, pipeline_of, land, settings, monkeypatch, file_format
):
    land("a.json", (1, "a"), (2, "b"))
    sink = {"type": "files", "path": "out", "format": file_format, "partition_by": ["kind"]}
    pipeline = pipeline_of(FILES, sinks=[sink])
    plan = runs.plan(pipeline)
    with monkeypatch.context() as patch:
        patch.setattr(FilesWriter, "write", die_after(FilesWriter.write))
        with pytest.raises(SinkError):
            run_pipeline(pipeline, settings, plan.run_id)
    run_pipeline(pipeline, settings, plan.run_id)
    (batch,) = runs.ledger(pipeline).read_run(plan.run_id).batches
    assert batch.sinks["main"].is_replay
    land("b.json", (3, "a"))
    assert runs.run(pipeline).summary.output_rows == 1
    rows = spark.read.schema("id long, kind string").format(file_format)
    found = rows.load(settings.locate_url("out")).collect()
    assert sorted((row.id, row.kind) for row in found) == [(1, "a"), (2, "b"), (3, "a")]


def test_a_folder_whose_log_is_ahead_blocks_the_run(runs, pipeline_of, land, settings):
    land("a.json", (1, "a"))
    sink = {"type": "files", "path": "out", "format": "json", "columns": ["id"]}
    runs.run(pipeline_of(FILES, sinks=[sink]))
    plan = runs.plan(pipeline_of(FILES, sinks=[sink], name="another"))
    assert plan.decision is Decision.BLOCKED
    assert "holds batch 0, and the checkpoint knows batches up to -1 only" in plan.reason


def test_a_function_is_told_the_batch_and_whether_it_was_called_for_it_before(
    runs, pipeline_of, land, settings, add_module
):
    add_module(
        "pushing",
        "calls = []\n\n"
        "def push(df, batch):\n"
        "    rows = [row.id for row in df.collect()]\n"
        "    calls.append((rows, df.columns, batch.id, batch.is_replay, batch.key, batch.pipeline))\n"
        "    if len(calls) == 1:\n"
        "        raise ValueError('no luck')\n"
        "    return len(rows)\n",
    )
    land("a.json", (1, "a"), (2, "b"))
    sink = {"type": "python", "function": "pushing:push", "where": "id > 1", "columns": ["id"]}
    pipeline = pipeline_of(FILES, sinks=[sink])
    plan = runs.plan(pipeline)
    with pytest.raises(SinkError, match="pushing:push, failed: ValueError: no luck"):
        run_pipeline(pipeline, settings, plan.run_id)
    run_pipeline(pipeline, settings, plan.run_id)
    land("b.json", (3, "c"))
    run = runs.run(pipeline)
    import pushing

    query = runs.find_query_id(pipeline)
    assert pushing.calls == [
        ([2], ["id"], 0, False, f"{query}:0", "p"),
        ([2], ["id"], 0, True, f"{query}:0", "p"),
        ([3], ["id"], 1, False, f"{query}:1", "p"),
    ]
    assert run.summary.output_rows == 1


def test_a_sink_that_has_done_its_batch_is_passed_over_when_another_one_failed(
    runs, spark, pipeline_of, land, settings, add_module, monkeypatch
):
    add_module(
        "counting", "calls = []\n\ndef push(df, batch):\n    calls.append(1)\n    return 7\n"
    )
    land("a.json", (1, "a"))
    location = settings.locate_url("lines")
    sinks = [
        {"type": "python", "name": "function", "function": "counting:push"},
        {"type": "spark", "name": "format", "format": "parquet", "options": {"path": location}},
        {"type": "files", "name": "folder", "path": "out", "format": "json"},
    ]
    pipeline = pipeline_of(FILES, sinks=sinks)
    plan = runs.plan(pipeline)

    def die(*_):
        raise SinkError("The machine went away.")

    with monkeypatch.context() as patch:
        patch.setattr(FilesWriter, "write", die)
        with pytest.raises(SinkError):
            run_pipeline(pipeline, settings, plan.run_id)
    run_pipeline(pipeline, settings, plan.run_id)
    import counting

    assert counting.calls == [1]
    assert [tuple(row) for row in spark.read.parquet(location).collect()] == [(1, "a")]
    (batch,) = runs.ledger(pipeline).read_run(plan.run_id).batches
    told = {name: (sink.rows, sink.is_replay) for name, sink in batch.sinks.items()}
    assert told == {"function": (7, True), "format": (None, True), "folder": (1, False)}


def test_a_function_that_is_not_there_is_told(runs, pipeline_of, land, add_module):
    add_module("empty", "")
    land("a.json", (1, "a"))
    with pytest.raises(TransformError, match="empty has no function 'push'"):
        runs.run(pipeline_of(FILES, sinks=[{"type": "python", "function": "empty:push"}]))


def test_any_format_of_spark_s_can_be_written(runs, spark, pipeline_of, land, settings):
    land("a.json", (1, "a"))
    location = settings.locate_url("out")
    sink = {"type": "spark", "format": "parquet", "options": {"path": location}}
    run = runs.run(pipeline_of(FILES, sinks=[sink]))
    assert [tuple(row) for row in spark.read.parquet(location).collect()] == [(1, "a")]
    assert run.summary.output_rows is None


def test_what_a_format_does_not_take_is_told(runs, pipeline_of, land, settings):
    land("a.json", (1, "a"))
    sink = {"type": "spark", "format": "text", "options": {"path": settings.locate_url("out")}}
    with pytest.raises(SinkError, match="The format text does not take the batch"):
        runs.run(pipeline_of(FILES, sinks=[sink]))


@pytest.mark.parametrize(
    "sink",
    [
        {"type": "files", "path": "out", "format": "json"},
        {"type": "python", "function": "os:getcwd"},
        {"type": "spark", "format": "parquet"},
    ],
)
def test_a_column_that_is_not_there_is_told(runs, pipeline_of, land, sink):
    land("a.json", (1, "a"))
    with pytest.raises(SinkError, match=r"takes nope, which .* Choose out of id, kind"):
        runs.run(pipeline_of(FILES, sinks=[{**sink, "columns": ["nope"]}]))
