"""What there is to do for a table is decided from its log, and why is told."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.delta_table import DeltaTableBuilder
from tidegate.core.errors import SpecError
from tidegate.core.maintenance.book import Done, MaintenanceBook, StepKind
from tidegate.core.maintenance.plan import Planner

KEYED = {"type": "delta", "mode": "upsert", "keys": "id", "sequence": "id"}
DAY = timedelta(days=1)


def list_kinds(plan):
    return [step.kind for step in plan.steps]


class TestTables:
    def test_only_tables_that_exist_are_looked_after(self, write_spec, settings):
        write_spec()
        (plan,) = Planner.load(settings).plan()
        assert (plan.tables, plan.has_work) == ((), False)

    def test_all_tables_of_a_pipeline_are(self, write_spec, settings):
        sinks = [
            {"type": "delta", "table": "plain"},
            KEYED | {"name": "keyed", "table": "keyed"},
            {"type": "delta", "name": "routed", "table": "routed", "route_by": "country"},
        ]
        write_spec(sinks=sinks)
        tables = [
            *("plain", "keyed", "keyed/_tidegate_deleted", "keyed/_tidegate_rows"),
            *("routed/de", "routed/fr", "quarantine/writer"),
        ]
        for table in tables:
            DeltaTableBuilder(Path(settings.data) / table).append()
        (Path(settings.data) / "routed/_other").mkdir()
        found = Planner.load(settings).list_tables("writer")
        assert [table.name for table in found] == tables
        assert [table.name for table in found if not table.is_appended] == ["keyed"]

    def test_a_table_of_two_pipelines_is_looked_after_by_one(self, write_spec, bronze, settings):
        bronze.append()
        write_spec("b")
        write_spec("a")
        plans = {plan.pipeline: plan.tables for plan in Planner.load(settings).plan()}
        assert {name: len(tables) for name, tables in plans.items()} == {"a": 1, "b": 0}

    def test_a_pipeline_that_is_not_there_is_told(self, write_spec, settings):
        write_spec()
        with pytest.raises(SpecError, match="there is no pipeline 'nobody'"):
            Planner.load(settings).plan("nobody")

    def test_a_broken_table_stops_no_other(self, write_spec, settings, bronze):
        write_spec(sinks=[{"type": "delta", "table": "bronze"}], quarantine="sound")
        bronze.append()
        (bronze.log / f"{0:020}.json").write_text("{")
        DeltaTableBuilder(Path(settings.data) / "sound").append()
        (plan,) = Planner.load(settings).plan()
        broken, sound = plan.tables
        assert "it cannot be looked at" in broken.warnings[0]
        assert sound.warnings == ()
        assert any("sound: nothing to do: 1 of 1 files are small" in t for t in plan.describe())


class TestOptimize:
    def test_enough_small_files_are_merged(self, write_spec, bronze, plan_table):
        write_spec(maintenance={"min_small_files": 3})
        bronze.append().append().append()
        assert "3 of 3 files are small" in plan_table().needless
        bronze.append()
        (step,) = plan_table().steps
        told = "4 of 4 files are small, and 3 can be spared"
        assert (step.kind, step.reason) == (StepKind.OPTIMIZE, told)
        bronze.optimize()
        assert plan_table().steps == ()

    def test_a_file_of_each_partition_is_no_reason(self, write_spec, settings, plan_table):
        from arro3.core import Array, DataType, Table
        from deltalake import write_deltalake

        write_spec(maintenance={"min_small_files": 2})
        days = Array(list(range(9)), DataType.int64())
        table = str(settings.locate("bronze"))
        rows = Table.from_pydict({"day": days, "id": days})
        write_deltalake(table, rows, partition_by=["day"])
        assert "9 of 9 files are small" in plan_table().needless
        write_deltalake(table, rows.slice(0, 2), mode="append")
        assert list_kinds(plan_table()) == [StepKind.OPTIMIZE]

    def test_not_where_the_policy_says_no(self, write_spec, bronze, plan_table):
        write_spec(maintenance={"min_small_files": 1, "optimize": False, "vacuum": False})
        bronze.append().append()
        assert list(plan_table().describe()) == ["nothing to do: its policy says so"]


class TestVacuum:
    def test_only_where_files_were_taken_away_long_enough_ago(self, write_spec, bronze, plan_table):
        write_spec()
        bronze.append().append()
        assert plan_table().steps == ()
        bronze.optimize()
        assert plan_table().steps == ()
        for version in range(3):
            bronze.age(version, 8 * DAY)
        assert list_kinds(plan_table()) == [StepKind.VACUUM]

    def test_not_again_for_what_the_last_one_deleted(self, write_spec, aged, plan_table, settings):
        write_spec()
        book = MaintenanceBook.of(settings, "writer")
        now = datetime.now(UTC)
        done = Done(now.isoformat(), "", before_ms=int((now - 7 * DAY).timestamp() * 1000))
        book.record("bronze", StepKind.VACUUM, done)
        assert "since the last VACUUM" in plan_table().needless[-1]
        aged.append().optimize().age(4, 8 * DAY).age(5, 7.5 * DAY)
        assert plan_table().steps == ()
        aged.age(5, 0 * DAY)
        earlier = Done(done.at, "", before_ms=int((now - 9 * DAY).timestamp() * 1000))
        book.record("bronze", StepKind.VACUUM, earlier)
        assert list_kinds(plan_table()) == [StepKind.VACUUM]

    def test_now_and_then_for_what_no_log_tells(self, write_spec, bronze, plan_table):
        write_spec()
        bronze.append().age(0, 31 * DAY)
        (step,) = plan_table().steps
        assert "files of writers that were killed were last looked for" in step.reason

    @pytest.mark.usefixtures("aged")
    def test_a_broken_record_only_makes_it_due_again(self, write_spec, plan_table, settings):
        write_spec()
        file = settings.state_of("writer") / "maintenance/tables/bronze.json"
        file.parent.mkdir(parents=True)
        file.write_text("{")
        assert list_kinds(plan_table()) == [StepKind.VACUUM]


class TestLog:
    @pytest.fixture
    def old(self, bronze):
        for version in range(23):
            bronze.append().age(version, (60 - version) * DAY)
        return bronze

    @pytest.fixture
    def policy(self, write_spec):
        def write(**said):
            write_spec(maintenance={"optimize": False, "vacuum": False} | said)

        return write

    @pytest.mark.usefixtures("old")
    def test_what_delta_left_is_cleaned_up(self, policy, plan_table):
        policy()
        (step,) = plan_table().steps
        assert step.kind is StepKind.CLEAN_LOG
        assert step.reason == "22 versions are older than 30 days"

    def test_not_what_a_reader_is_yet_to_read(
        self, policy, old, write_reader, checkpoint_of, plan_table
    ):
        policy()
        write_reader()
        checkpoint = checkpoint_of("reader")
        checkpoint.batch(0, checkpoint.delta(5) | {"reservoirId": old.id})
        plan = plan_table()
        assert plan.steps == ()
        soon, not_cleaned = plan.warnings
        assert "reader has read up to version 4, and the log keeps 30 days" in soon
        assert "its log is not cleaned up: reader has read up to version 4" in not_cleaned

    def test_the_table_is_told_how_long_to_keep_it(self, policy, bronze, plan_table):
        bronze.append()
        policy(log_retention="30d")
        assert plan_table().steps == ()
        policy(log_retention="14d")
        (step,) = plan_table().steps
        assert (step.kind, step.span) == (StepKind.LOG_RETENTION, 14 * DAY)
        assert step.reason == "the log keeps 30 days, and is to keep 14 days"

    @pytest.mark.parametrize(("said", "kept"), [("7d", 63), ("14d", 70), ("90d", 90)])
    def test_a_lagging_reader_has_it_keep_a_multiple(
        self, policy, old, write_reader, checkpoint_of, plan_table, said, kept
    ):
        policy(log_retention=said)
        write_reader()
        checkpoint = checkpoint_of("reader")
        checkpoint.batch(0, checkpoint.delta(2) | {"reservoirId": old.id})
        (step,) = plan_table().steps
        assert step.span == kept * DAY
        assert ("reader has read up to version 1" in step.reason) == (said != "90d")

    def test_what_is_gone_already_nobody_waits_for(
        self, policy, old, write_reader, checkpoint_of, plan_table
    ):
        policy()
        write_reader()
        checkpoint = checkpoint_of("reader")
        checkpoint.batch(0, checkpoint.delta(0) | {"reservoirId": old.id})
        from deltalake import DeltaTable

        DeltaTable(old.path).create_checkpoint()
        (old.log / f"{0:020}.json").unlink()
        assert list_kinds(plan_table()) == [StepKind.CLEAN_LOG]
