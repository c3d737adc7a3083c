"""OPTIMIZE and VACUUM for real: tables get smaller, and no reader loses a row."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from upath import UPath

from tests.delta_table import DeltaTableBuilder
from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import MaintenanceError
from tidegate.core.lease import LeaseFolder, take_lease
from tidegate.core.maintenance.book import MaintenanceBook, StepKind
from tidegate.core.spec.pipeline import Pipeline
from tidegate.spark.maintenance import maintain_tables
from tidegate.spark.runner import run_pipeline

DAY = timedelta(days=1)
RATE = {"type": "rate", "rows_per_batch": 1}
BRONZE = {"type": "delta", "table": "bronze"}


@pytest.fixture
def declare(settings):
    """Write a spec, and build its pipeline."""
    settings.pipelines.mkdir(parents=True, exist_ok=True)

    def write(name: str, **parts) -> Pipeline:
        spec = {"name": name, "source": RATE, "sinks": [BRONZE]} | parts
        (settings.pipelines / f"{name}.yaml").write_text(json.dumps(spec))  # JSON is YAML
        return Pipeline.model_validate(spec)

    return write


@pytest.fixture
def writer(declare) -> Pipeline:
    """The pipeline that looks after the table bronze."""
    return declare("writer", maintenance={"min_small_files": 2})


@pytest.fixture
def table(settings) -> DeltaTableBuilder:
    """The table bronze, whose rows need not come from Spark."""
    return DeltaTableBuilder(Path(settings.data) / "bronze")


@pytest.fixture
def reader(declare, table, runs) -> Pipeline:
    """Has read what was merged 50 days ago; what came 20 days ago was merged 10 days ago."""
    source = BRONZE | {"max_files_per_trigger": 100}
    silver = declare("reader", source=source, sinks=[{"type": "delta", "table": "silver"}])
    table.append().append().optimize()
    runs.run(silver)
    table.append().append().optimize()
    for version, days in enumerate((61, 60, 50, 21, 20, 10)):
        table.age(version, days * DAY)
    return silver


@pytest.fixture(autouse=True)
def _no_memory(spark):
    """Have Delta read logs anew: they are changed behind its back."""
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def list_data(table: DeltaTableBuilder) -> set[str]:
    return {file.name for file in table.path.glob("*.parquet")}


def list_added(table: DeltaTableBuilder, *versions: int) -> set[str]:
    log = DeltaLog(UPath(table.path))
    return {path for version in versions for path in log.read_change(version).added}


def test_small_files_are_merged_and_what_was_done_is_written_down(
    writer, table, settings, rows_of, capsys
):
    table.append().append().append()
    before = rows_of("bronze")
    maintain_tables(writer, settings)
    assert rows_of("bronze") == before
    done = MaintenanceBook.of(settings, "writer").read("bronze").steps[StepKind.OPTIMIZE]
    assert (done.files_removed, done.files_added) == (3, 1)
    assert done.bytes_removed > done.bytes_added > 0
    first, last = capsys.readouterr().out.splitlines()
    told = "tidegate: writer bronze: optimize: "
    assert first == f"{told}3 of 3 files are small, and 2 can be spared"
    assert last.startswith(f"{told}3 files removed (")
    maintain_tables(writer, settings)
    assert capsys.readouterr().out == ""


def test_a_clustered_table_is_clustered(spark, declare, settings, rows_of):
    url = settings.locate_url("bronze")
    spark.sql(f"CREATE TABLE delta.`{url}` (id long) USING delta CLUSTER BY (id)")
    for first in (2, 1, 0):
        spark.range(first, 9, 3).coalesce(1).write.format("delta").mode("append").save(url)
    sinks = [BRONZE | {"cluster_by": ["id"]}]
    maintain_tables(declare("writer", sinks=sinks, maintenance={"min_small_files": 2}), settings)
    log = DeltaLog(settings.locate("bronze"))
    added = [a["add"] for a in log.read_actions(log.require_version()) if "add" in a]
    assert [add["clusteringProvider"] for add in added] == ["liquid"]
    assert rows_of("bronze") == [(number,) for number in range(9)]


def test_a_lagging_reader_reads_on_after_vacuum(
    writer, reader, table, runs, settings, rows_of, capsys
):
    maintain_tables(writer, settings)
    # What the reader has behind it is gone, and what it has before it is not.
    assert list_data(table) >= list_added(table, 3, 4)
    assert list_data(table).isdisjoint(list_added(table, 0, 1))
    assert "instead of 7 days: reader has read up to version 2, of " in capsys.readouterr().out
    runs.run(reader)
    assert rows_of("silver") == rows_of("bronze")

    version = DeltaLog(UPath(table.path)).find_version()
    maintain_tables(writer, settings)
    assert list_data(table).isdisjoint(list_added(table, 3, 4))
    assert DeltaLog(UPath(table.path)).find_version() == version  # which would wake readers
    table.append()
    runs.run(reader)
    assert rows_of("silver") == rows_of("bronze")


def test_one_that_nobody_knows_of_could_not(writer, reader, runs, settings):
    spec = settings.pipelines / "reader.yaml"
    spec.rename(spec.with_suffix(".hidden"))
    maintain_tables(writer, settings)
    plan = runs.plan(reader)
    with pytest.raises(Exception, match=r"FILE_NOT_EXIST|FAILED_READ_FILE"):
        run_pipeline(reader, settings, plan.run_id)


def test_the_log_is_kept_as_the_policy_says_and_cleaned_up(declare, table, settings, rows_of):
    for version in range(23):
        table.append().age(version, (60 - version) * DAY)
    policy = {"optimize": False, "vacuum": False, "log_retention": "14d"}
    maintain_tables(declare("writer", maintenance=policy), settings)
    log = DeltaLog(UPath(table.path))
    assert log.read_retention(log.require_version()) == 14 * DAY
    assert log.find_earliest_version() > 20
    assert len(rows_of("bronze")) == 69
    done = MaintenanceBook.of(settings, "writer").read("bronze").steps
    assert set(done) == {StepKind.LOG_RETENTION, StepKind.CLEAN_LOG}
    assert done[StepKind.CLEAN_LOG].files_removed >= 22


def test_a_table_whose_rows_change_waits_for_its_run(declare, table, settings, capsys):
    table.append().append().append()
    keyed = BRONZE | {"mode": "upsert", "keys": "id", "sequence": "id"}
    writer = declare("writer", sinks=[keyed], maintenance={"min_small_files": 2})
    lease = take_lease(LeaseFolder.beside(settings.checkpoint_of("writer")), "run", seconds=30)
    maintain_tables(writer, settings)
    assert "optimize waits, since a run is changing its rows" in capsys.readouterr().out
    lease.release()
    maintain_tables(writer, settings)
    assert "3 files removed" in capsys.readouterr().out


def test_one_table_that_fails_stops_no_other(declare, table, settings):
    other = DeltaTableBuilder(Path(settings.data) / "other").append().append().append()
    table.append().append().append()
    sinks = [BRONZE, {"type": "delta", "table": "other", "name": "other"}]
    writer = declare("writer", sinks=sinks, maintenance={"min_small_files": 2})
    for file in list_data(table):
        (table.path / file).write_bytes(b"not parquet")
    with pytest.raises(MaintenanceError, match=r"^optimize of bronze: Spark failed: "):
        maintain_tables(writer, settings)
    assert len(list_data(other)) == 4
    assert MaintenanceBook.of(settings, "writer").read("bronze").steps == {}
