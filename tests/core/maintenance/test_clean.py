"""Old records go; what status, confirm, recovery and people still need stays."""

import os
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import pytest

from tidegate.core.backfill.book import Backfill
from tidegate.core.backfill.range import FilesRange
from tidegate.core.backfill.request import Mode
from tidegate.core.lease import LeaseFolder, take_lease
from tidegate.core.ledger import Announcement, Baseline, BatchRecord, Decision, Ledger, Plan
from tidegate.core.maintenance.clean import clean_state
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.storage import list_names, write_json
from tidegate.core.target import BatchTarget

NOW = datetime.now(UTC)


def ago(days: float) -> str:
    return (NOW - timedelta(days=days)).isoformat(timespec="milliseconds")


def build(**policy) -> Pipeline:
    return Pipeline.model_validate(
        {
            "name": "p",
            "source": {"type": "rate", "rows_per_batch": 1},
            "sinks": [{"type": "delta", "table": "out"}],
            "maintenance": {"ledger_retention": "10d", "keep_batches": 1} | policy,
        }
    )


@pytest.fixture
def ledger(settings) -> Ledger:
    return Ledger.beside(settings.state_of("p"))


@pytest.fixture
def open_run(ledger):
    """Plan a run, some days ago."""

    def plan(run_id: str, days: float, committed: int | None = None, told: int | None = None):
        ledger.open_run(
            Plan(
                *(run_id, Decision.RUN, "", ago(days), BatchTarget(1)),
                baseline=Baseline("q", committed),
                announced=None if told is None else Announcement("q", told),
            )
        )

    return plan


@pytest.fixture
def record_batches(ledger):
    """Record a batch a day, the newest one half a day ago."""

    def record(count: int) -> None:
        for batch_id in range(count):
            at = ago(count - 0.5 - batch_id)
            ledger.record_batch(BatchRecord(batch_id, f"r{batch_id}", 1, 1.0, at, [], {}))

    return record


@pytest.fixture
def list_batches(ledger):
    def find() -> list[int]:
        names = list_names(ledger.folder / "batches")
        return sorted(int(name.removesuffix(".json")) for name in names)

    return find


def clean(settings, pipeline=None, **how):
    return clean_state(pipeline or build(), settings, **how)


class TestBatches:
    def test_old_ones_go(self, settings, open_run, record_batches, list_batches):
        open_run("last", 0, committed=19)
        record_batches(20)
        assert clean(settings).counts == {"records of batches": 10}
        assert list_batches() == list(range(10, 20))
        assert list(clean(settings).describe()) == ["nothing to clear away"]

    def test_a_dry_run_only_counts(self, settings, open_run, record_batches, list_batches):
        open_run("last", 0, committed=19)
        record_batches(20)
        (told,) = clean(settings, is_dry=True).describe()
        assert told == "to clear away: 10 records of batches"
        assert len(list_batches()) == 20

    @pytest.mark.parametrize(
        ("policy", "planned", "first"),
        [
            ({"keep_batches": 15}, {"committed": 19}, 5),
            ({"keep_batches": 100}, {"committed": 19}, 0),
            ({"ledger_retention": "90d"}, {"committed": 19}, 0),
            ({}, {"committed": 3}, 3),  # what the last run did is yet to be recovered
            ({}, {"committed": None}, 0),
            ({}, {"committed": 19, "told": 4}, 4),  # and downstream is yet to be told
            ({}, {"committed": 19, "told": 18}, 10),
        ],
    )
    def test_what_is_needed_stays(
        self, settings, open_run, record_batches, list_batches, policy, planned, first
    ):
        open_run("last", 0, **planned)
        record_batches(20)
        clean(settings, build(**policy))
        assert list_batches()[0] == first

    def test_of_a_ledger_without_a_plan_nothing_goes(self, settings, record_batches, list_batches):
        record_batches(20)
        assert clean(settings).counts == {}
        assert len(list_batches()) == 20

    def test_a_broken_ledger_is_left_alone(
        self, settings, open_run, record_batches, list_batches, ledger
    ):
        open_run("last", 0, committed=19)
        record_batches(20)
        (ledger.folder / "latest.json").write_text("{")
        (batches, runs) = clean(settings).problems
        assert batches.startswith("records of batches are left alone: ")
        assert runs.startswith("runs are left alone: ")
        assert len(list_batches()) == 20


class TestRuns:
    def test_old_ones_go_and_the_last_one_stays(self, settings, ledger, open_run):
        for run_id, days in (("old", 30), (f"scheduled__{ago(20)}", 20), ("young", 2)):
            open_run(run_id, days)
        open_run("last", 40)
        assert clean(settings).counts == {"runs": 2}
        assert ledger.read_plan("young").run_id == "young"
        assert ledger.find_latest().plan.run_id == "last"
        assert (ledger.folder / "run=last" / "plan.json").exists()

    def test_a_date_in_its_name_spares_reading_it(self, settings, ledger, open_run):
        name = f"scheduled__{ago(2)}"
        open_run(name, 2)
        open_run("last", 0)
        (folder,) = (n for n in list_names(ledger.folder) if n.startswith("run=scheduled"))
        (ledger.folder / folder / "plan.json").write_text("{")  # would be told if it were read
        assert clean(settings).problems == ()


class TestBackfills:
    @pytest.fixture
    def begin(self, settings):
        def write(name: str, days: float, mode: Mode = Mode.MERGE, **done):
            part = FilesRange(("a",))
            folder = settings.state_of("p") / "backfills" / f"backfill__{name}"
            backfill = Backfill(f"backfill__{name}", mode, part, (part,), ago(days))
            write_json(folder / "plan.json", asdict(backfill))
            if done.get("slice"):
                result = {"rows_read": 3, "malformed": 0, "passages": {}, "written": {}}
                result |= {"number": 0, "quarantined": 0}
                write_json(folder / "slices" / "0.json", result)
            if done.get("swap"):
                write_json(folder / "swaps" / "main.json", {"rows": 3})
            if done.get("verified", True):
                write_json(folder / "verification.json", {})

        return write

    def test_finished_ones_go(self, settings, begin):
        begin("done", 40, slice=True)
        begin("swapped", 40, Mode.REPLACE, slice=True, swap=True)
        begin("not_swapped", 40, Mode.REPLACE, slice=True)
        begin("not_done", 40)
        begin("not_verified", 40, slice=True, verified=False)
        begin("young", 20, slice=True)
        assert clean(settings).counts == {"backfills": 2}
        left = sorted(list_names(settings.state_of("p") / "backfills"))
        names = ("not_done", "not_swapped", "not_verified", "young")
        assert left == [f"backfill__{name}" for name in names]

    def test_finished_replays_go(self, settings):
        folder = settings.state_of("p") / "replays"
        for days, result in ((40, None), (41, {"written": {}, "put_aside": 0}), (2, None)):
            replay_id = f"replay__{ago(days)}"
            body = {"id": replay_id, "version": 0, "choice": {}, "rows": 1, "result": result}
            write_json(folder / f"{replay_id}.json", body)
        assert clean(settings).counts == {"replays": 1}
        assert len(list_names(folder)) == 2


class TestLitter:
    @pytest.fixture
    def littered(self, checkpoint_of):
        checkpoint = checkpoint_of("p").batches(3).litter("offsets", 1)
        # An orphan in the way of the next batch, which a person should look at.
        checkpoint.delete("commits/2").litter("commits", 2)
        return checkpoint

    @staticmethod
    def age(checkpoint, days: float) -> None:
        moment = (NOW - timedelta(days=days)).timestamp()
        for folder in ("offsets", "commits"):
            for name in list_names(checkpoint.path / folder):
                os.utime(str(checkpoint.path / folder / name), (moment, moment))

    def test_what_killed_drivers_left_goes(self, settings, littered):
        self.age(littered, 2)
        assert clean(settings).counts == {"files that killed drivers left": 2}
        assert not [n for n in list_names(littered.path / "offsets") if n.endswith(".tmp")]
        assert ".2.crc" in list_names(littered.path / "commits")

    @pytest.mark.usefixtures("littered")
    def test_not_what_may_still_be_written(self, settings):
        assert clean(settings).counts == {}

    def test_not_while_a_driver_is_at_it(self, settings, littered):
        self.age(littered, 2)
        lease = take_lease(LeaseFolder.beside(littered.path), "run x", seconds=30)
        assert clean(settings).counts == {}
        lease.release()
        assert clean(settings).counts
