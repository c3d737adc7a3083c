"""Whole runs into Delta tables of every mode, also when a driver dies."""

import json
from pathlib import Path

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812

from tidegate.core.condition import Verdict
from tidegate.core.errors import SinkError
from tidegate.core.spec.sinks.delta import DeltaSink
from tidegate.spark.runner import run_pipeline
from tidegate.spark.sinks.delta import DeltaAppend, DeltaHistory, DeltaOverwrite, DeltaUpsert

FILES = {
    "type": "files",
    "path": "landing",
    "format": "json",
    "schema": "id long, at long, v string, gone boolean",
    "max_files_per_trigger": 1,
    "provenance": False,
    "malformed": "fail",
}
KEYED = {"keys": ["id"], "sequence": ["at"], "delete_when": "gone", "columns": ["id", "at", "v"]}
MODES = {
    "upsert": (DeltaUpsert, KEYED, [(1, 2, "new")]),
    "scd2": (DeltaHistory, KEYED, [(1, 1, "a"), (1, 2, "new"), (2, 1, "b")]),
    "overwrite": (DeltaOverwrite, {}, [(1, 2, 2), (2, 2, 2)]),
    "append": (DeltaAppend, {}, [(1, 1, "a"), (1, 2, "new"), (2, 1, "b"), (2, 2, None)]),
}
TOTALS = {
    "transform": {"sql": "SELECT id, max(at) AS at, count(*) AS v FROM input GROUP BY id"},
    "output_mode": "complete",
}
FIRST = [{"id": 1, "at": 1, "v": "a"}, {"id": 2, "at": 1, "v": "b"}]
SECOND = [{"id": 1, "at": 2, "v": "new"}, {"id": 2, "at": 2, "gone": True}]


@pytest.fixture
def land(settings):
    """Land a file of records."""

    def write(name, records):
        folder = Path(settings.data) / "landing"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("\n".join(map(json.dumps, records)))

    return write


@pytest.mark.parametrize("mode", MODES)
def test_a_driver_that_dies_after_its_write_is_followed_by_one_that_writes_nothing_twice(
    runs, pipeline_of, settings, land, rows_of, monkeypatch, mode
):
    kind, fields, expected = MODES[mode]
    parts = TOTALS if mode == "overwrite" else {}
    pipeline = pipeline_of(FILES, sink={"mode": mode} | fields, **parts)
    land("a.json", FIRST)
    runs.run(pipeline)
    land("b.json", SECOND)
    plan = runs.plan(pipeline)
    write = kind.write

    def write_then_die(self, batch, batch_id, query_id):
        write(self, batch, batch_id, query_id)
        raise SinkError("The machine went away.")

    with monkeypatch.context() as patch:
        patch.setattr(kind, "write", write_then_die)
        with pytest.raises(SinkError, match="machine went away"):
            run_pipeline(pipeline, settings, plan.run_id)
    assert runs.judge(pipeline, plan).verdict is Verdict.FAILED

    run_pipeline(pipeline, settings, plan.run_id)
    assert runs.judge(pipeline, plan).verdict is Verdict.REACHED
    assert rows_of("out", "id", "at", "v") == expected
    [batch] = runs.ledger(pipeline).read_run(plan.run_id).batches
    assert batch.sinks["main"].is_replay
    assert batch.sinks["main"].rows == {"scd2": 3}.get(mode, 2)


def test_changes_of_debezium_keep_a_table_up_to_date(runs, pipeline_of, land, rows_of):
    row = "struct<id:long,v:string>"
    source = FILES | {"schema": f"before {row}, after {row}, op string, source struct<lsn:long>"}
    sink = {
        "mode": "upsert",
        "keys": ["id"],
        "sequence": "_sequence",
        "delete_when": "_deleted",
        "columns": ["id", "v", "_sequence"],
    }
    step = {"changes": "debezium", "sequence": "source.lsn"}
    pipeline = pipeline_of(source, transform=[step], sink=sink)
    one, two = {"id": 1, "v": "a"}, {"id": 2, "v": "b"}
    land("a.json", [{"after": one, "op": "c", "source": {"lsn": 1}}])
    land("b.json", [{"after": two, "op": "r", "source": {"lsn": 2}}])
    runs.run(pipeline)
    land("c.json", [{"before": one, "op": "d", "source": {"lsn": 3}}, {"op": None}])
    land("d.json", [{"before": two, "after": two | {"v": "c"}, "op": "u", "source": {"lsn": 4}}])
    runs.run(pipeline)
    assert rows_of("out") == [(2, "c", 4)]


@pytest.mark.parametrize("kind", [DeltaAppend, DeltaOverwrite])
def test_what_rows_are_observed_for_is_known_once_they_are_written(spark, settings, kind):
    mode = "append" if kind is DeltaAppend else "overwrite"
    writer = kind(DeltaSink(type="delta", table="out", mode=mode), settings)
    for batch_id in range(2):
        seen = Observation()
        rows = spark.range(7, numPartitions=3).observe(seen, F.count("*").alias("n"))
        writer.write(rows.where("id > 2"), batch_id, "query")
        assert seen.get == {"n": 7}
    assert writer.is_observed


@pytest.mark.parametrize("mode", MODES)
def test_a_batch_of_no_rows_is_in_the_table_s_log_all_the_same(
    runs, pipeline_of, settings, land, mode
):
    _, fields, _ = MODES[mode]
    parts = TOTALS if mode == "overwrite" else {}
    pipeline = pipeline_of(FILES, sink={"mode": mode} | fields, **parts)
    land("a.json", FIRST)
    runs.run(pipeline)
    land("b.json", [])
    plan = runs.plan(pipeline)
    run_pipeline(pipeline, settings, plan.run_id)
    judgement = runs.judge(pipeline, plan)
    assert judgement.verdict is Verdict.REACHED, judgement.reason
    assert judgement.progress.committed_batch == 1


def test_a_table_that_was_set_back_while_a_run_went_on_fails_its_confirm(
    spark, runs, pipeline_of, settings, land
):
    pipeline = pipeline_of(FILES)
    land("a.json", FIRST)
    runs.run(pipeline)
    land("b.json", SECOND)
    plan = runs.plan(pipeline)
    run_pipeline(pipeline, settings, plan.run_id)
    log = Path(settings.data) / "out" / "_delta_log"
    for file in log.glob("*00001.*"):
        file.unlink()
    judgement = runs.judge(pipeline, plan)
    assert judgement.verdict is Verdict.FAILED
    assert "Batch 1 is committed, but the table" in judgement.reason
    assert "holds batches up to 0 only" in judgement.reason
