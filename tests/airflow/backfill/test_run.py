"""The DAG of backfills in one process: real tasks, real spark-submit."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable
from upath import UPath

from tidegate.core.backfill.book import Backfills
from tidegate.core.deltatable import DeltaRows
from tidegate.core.spec.loader import load_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def landing(settings) -> Path:
    folder = Path(settings.data) / "landing"
    folder.mkdir(parents=True)
    for number in range(4):
        (folder / f"it's {number}.json").write_text(json.dumps({"id": number}))
    return folder


@pytest.fixture
def run_dag(dag_bag):
    """Run a DAG with what was filled in, and return the states of its tasks and their XComs."""

    def run(name: str, **conf):
        from airflow.models.xcom import XComModel
        from airflow.utils.session import create_session

        result = dag_bag().dags[name].test(run_conf=conf or None)
        tasks = result.get_task_instances()
        states = sorted((task.task_id, str(task.state)) for task in tasks)
        with create_session() as session:
            found = session.query(XComModel).filter_by(run_id=result.run_id, key="return_value")
            told = {(row.task_id, row.map_index): row.value for row in found}
        return result, states, told

    return run


@pytest.fixture
def rows(settings):
    def read():
        rows = DeltaRows.open(UPath(settings.data) / "out" / "p")
        return sorted(row["id"] for row in rows.select("id").to_pylist())

    return read


def test_a_range_is_healed_by_the_form(write_spec, landing, run_dag, rows, settings, capsys):
    write_spec()
    _, states, _ = run_dag("p")
    assert dict(states)["confirm"] == "success"
    DeltaTable(str(Path(settings.data) / "out" / "p")).delete("id IN (1, 2)")
    assert rows() == [0, 3]

    asked = {"pipeline": "p", "mode": "replace", "glob": "it's [0-2].json", "slices": 2}
    result, states, _ = run_dag("backfill", **asked)
    assert states == [
        ("plan", "success"),
        ("slice", "skipped"),
        ("swap", "skipped"),
        ("verify", "skipped"),
    ]
    assert str(result.state) == "success"
    told = capsys.readouterr().out
    assert "p: replace 3 files, in 2 slices" in told
    assert "p: out/p has 1 row of the range, to be swapped" in told
    assert rows() == [0, 3]
    assert not (Path(settings.state) / "p" / "backfills").exists()

    result, states, told = run_dag("backfill", **asked, parallelism=2, dry_run=False)
    assert states == [
        ("plan", "success"),
        *[("slice", "success")] * 2,
        ("swap", "success"),
        ("verify", "success"),
    ]
    assert rows() == [0, 1, 2, 3]
    assert told["slice", 0]["slice"] == "1 of 2: 1 file"
    progress = sorted(told["slice", number]["progress"] for number in range(2))
    assert progress[1].startswith("2 of 2 slices done, 3 rows read")
    (audit,) = told["verify", -1]["sinks"]
    assert (audit["read"], audit["written"], audit["held"]) == (3, 3, 3)
    pipeline = load_pipeline(settings.pipelines, "p").require()
    book = Backfills(pipeline, settings)
    begun = book.read(f"backfill__{result.run_id}")
    assert book.is_finished(begun)

    # What is not swapped is verified all the same.
    DeltaTable(str(Path(settings.data) / "out" / "p")).delete("id = 3")
    added = {"pipeline": "p", "mode": "append", "paths": ["it's 3.json"], "dry_run": False}
    _, states, told = run_dag("backfill", **added)
    assert [state for _, state in states] == ["success"] * 4
    assert rows() == [0, 1, 2, 3]
    assert told["verify", -1]["sinks"][0]["written"] == 1


def test_all_mistakes_are_told_by_the_first_task(write_spec, landing, run_dag, capsys):
    write_spec()
    result, states, _ = run_dag(
        "backfill",
        pipeline="p",
        mode="merge",
        first_version=1,
        since="2026-01-01T00:00:00Z",
        dry_run=False,
    )
    assert states == [
        ("plan", "failed"),
        ("slice", "upstream_failed"),
        ("swap", "upstream_failed"),
        ("verify", "upstream_failed"),
    ]
    assert str(result.state) == "failed"
    log = capsys.readouterr().out
    for told in (
        "first_version: is for a source of type delta",
        "it does not know rows by keys",
        "takes first_version or since, not both",
    ):
        assert told in log
