"""A whole run: plan, query, ledger, verdict."""

import json
from pathlib import Path

import pytest

from tidegate.core.condition import Verdict
from tidegate.core.errors import SinkError, TransformError
from tidegate.core.ledger import Decision, Outcome

SCHEMA = "id long, name string"


def land(folder: Path, name: str, *ids: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps({"id": i, "name": f"n{i}"}) for i in ids)
    (folder / name).write_text("\n".join(lines) + "\n")


@pytest.fixture
def landing(settings) -> Path:
    return Path(settings.data) / "landing"


@pytest.fixture
def pipeline(pipeline_of):
    return pipeline_of(
        {
            "type": "files",
            "path": "landing",
            "format": "json",
            "schema": SCHEMA,
            "max_files_per_trigger": 2,
        }
    )


def test_each_row_arrives_once_in_bounded_batches(runs, pipeline, landing, rows_of):
    for number in range(5):
        land(landing, f"{number}.json", number)
    run = runs.run(pipeline)
    assert rows_of("out", "id") == [(0,), (1,), (2,), (3,), (4,)]
    assert [batch.input_rows for batch in run.batches] == [2, 2, 1]
    assert run.summary.output_rows == 5
    assert run.attempt.outcome is Outcome.SUCCEEDED


def test_nothing_new_is_idle_and_touches_neither_checkpoint_nor_table(
    runs, pipeline, landing, settings
):
    land(landing, "a.json", 1)
    runs.run(pipeline)
    folders = (settings.checkpoint_of("p"), settings.locate("out"))
    before = [sorted(map(str, Path(str(folder)).rglob("*"))) for folder in folders]
    plan = runs.plan(pipeline)
    assert plan.decision is Decision.IDLE
    assert before == [sorted(map(str, Path(str(folder)).rglob("*"))) for folder in folders]


def test_the_next_run_reads_just_what_is_new(runs, pipeline, landing, rows_of):
    land(landing, "a.json", 1, 2)
    runs.run(pipeline)
    land(landing, "b.json", 3)
    run = runs.run(pipeline)
    assert run.summary.input_rows == 1
    assert [batch.batch_id for batch in run.batches] == [1]
    assert rows_of("out", "id") == [(1,), (2,), (3,)]


def test_broken_records_are_kept_as_they_were_found(runs, pipeline, landing, rows_of):
    land(landing, "a.json", 1)
    with (landing / "a.json").open("a") as file:
        file.write('{"id": 2, "na')
    runs.run(pipeline)
    assert set(rows_of("out", "id", "_corrupt_record")) == {(1, None), (None, '{"id": 2, "na')}


def test_a_row_says_which_file_it_came_from(runs, pipeline, landing, rows_of):
    land(landing, "a b.json", 1)
    runs.run(pipeline)
    [(file,)] = rows_of("out", "_file")
    assert file.endswith("/landing/a%20b.json")


def test_a_failing_batch_stays_pending_and_is_replayed_once(
    runs, pipeline, landing, settings, rows_of, monkeypatch
):
    from tidegate.spark.sinks.delta import DeltaAppend

    land(landing, "a.json", 1)
    runs.run(pipeline)
    land(landing, "b.json", 2)
    plan = runs.plan(pipeline)
    write = DeltaAppend.write

    def write_then_die(self, batch, batch_id, query_id):
        write(self, batch, batch_id, query_id)
        raise SinkError("The machine went away.")

    from tidegate.spark.runner import run_pipeline

    with monkeypatch.context() as patch:
        patch.setattr(DeltaAppend, "write", write_then_die)
        with pytest.raises(Exception, match="The machine went away"):
            run_pipeline(pipeline, settings, plan.run_id)
    attempt = runs.ledger(pipeline).read_run(plan.run_id).attempt
    assert attempt.error == "The machine went away."
    judgement = runs.judge(pipeline, plan)
    assert judgement.verdict is Verdict.FAILED
    assert "1 of 1 files are not committed (b.json" in judgement.reason
    assert judgement.progress.state == "pending"

    run_pipeline(pipeline, settings, plan.run_id)
    assert runs.judge(pipeline, plan).verdict is Verdict.REACHED
    assert rows_of("out", "id") == [(1,), (2,)]
    [batch] = runs.ledger(pipeline).read_run(plan.run_id).batches
    assert (batch.sinks["main"].is_replay, batch.sinks["main"].rows) == (True, 1)


def test_a_record_that_fails_in_a_batch_is_told_by_its_cause(runs, pipeline_of, landing):
    land(landing, "a.json", 1)
    source = {
        "type": "files",
        "path": "landing",
        "format": "json",
        "schema": SCHEMA,
        "max_files_per_trigger": 1,
    }
    pipeline = pipeline_of(source, transform={"sql": "SELECT CAST(name AS int) AS n FROM input"})
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        runs.run(pipeline)
    error = runs.ledger(pipeline).find_latest().attempt.error
    assert error.startswith("Spark failed: [CAST_INVALID_INPUT] The value 'n1'")
    (landing / "a.json").unlink()
    plan = runs.plan(pipeline)
    assert plan.decision is Decision.BLOCKED
    assert "a.json" in plan.reason
    assert plan.reason.endswith("Put them back, then run again.")


def test_a_transform_that_fails_writes_nothing(runs, pipeline_of, landing, settings):
    land(landing, "a.json", 1)
    pipeline = pipeline_of(
        {
            "type": "files",
            "path": "landing",
            "format": "json",
            "schema": SCHEMA,
            "max_files_per_trigger": 1,
        },
        transform={"sql": "SELECT nothing FROM input"},
    )
    with pytest.raises(TransformError, match=r"Step 1 of p is not valid SQL.*nothing.*columns id"):
        runs.run(pipeline)
    assert not settings.checkpoint_of("p").exists()
    assert not settings.locate("out").exists()
    run = runs.ledger(pipeline).find_latest()
    assert run.attempt.outcome is Outcome.FAILED
    assert "not valid SQL" in run.attempt.error


def test_a_stateful_pipeline_drops_what_it_has_seen_in_an_earlier_run(
    runs, pipeline_of, landing, rows_of, settings
):
    settings.pipelines.mkdir(parents=True, exist_ok=True)
    (settings.pipelines / "dedupe_step.py").write_text(
        "def once(df, context):\n"
        "    return (df.withWatermark('_file_modified', '1 day')\n"
        "            .dropDuplicatesWithinWatermark(['id']))\n"
    )
    pipeline = pipeline_of(
        {
            "type": "files",
            "path": "landing",
            "format": "json",
            "schema": SCHEMA,
            "max_files_per_trigger": 1,
        },
        transform={"python": "dedupe_step:once"},
    )
    land(landing, "a.json", 1, 2, 2)
    runs.run(pipeline)
    land(landing, "b.json", 2, 3)
    runs.run(pipeline)
    assert rows_of("out", "id") == [(1,), (2,), (3,)]
    assert runs.plan(pipeline).decision is Decision.IDLE
