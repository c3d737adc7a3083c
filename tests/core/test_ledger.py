"""The run ledger: what is written is read, whole, and below its own folder."""

import re
from dataclasses import replace

import pytest
from upath import UPath

from tidegate.core.errors import LedgerError
from tidegate.core.ledger import (
    Announcement,
    Attempt,
    Baseline,
    BatchRecord,
    Decision,
    Ledger,
    Outcome,
    Plan,
    Run,
    SinkRecord,
    Summary,
)
from tidegate.core.storage import list_names
from tidegate.core.target import BatchTarget, DeltaTarget, FilesTarget, KafkaTarget

PLAN = Plan(
    run_id="manual__2026-11-16T03:49:10.971465+00:00",
    decision=Decision.RUN,
    reason="2 files to read",
    planned_at="2026-11-16T03:49:11.000+00:00",
    target=FilesTarget(("/landing/a b.json", "/landing/é.json")),
    baseline=Baseline("0deb1b20", 1),
)
LATER = "2026-11-16T05:00:00.000+00:00"
ATTEMPT = Attempt(Outcome.FAILED, "2026-11-16T03:49:12.000+00:00", None, "It broke.")


def record(batch, *, rows=10, version=1, sink="main", run_id=PLAN.run_id):
    return BatchRecord(
        batch_id=batch,
        run_id=run_id,
        input_rows=rows + 1,
        seconds=1.5,
        committed_at="2026-11-16T03:49:20.000+00:00",
        sources=[{"startOffset": None, "endOffset": {"logOffset": batch}}],
        sinks={sink: SinkRecord(rows=rows, version=version)},
    )


@pytest.fixture
def ledger(store):
    return Ledger.beside(store)


@pytest.mark.parametrize(
    "target",
    [
        None,
        PLAN.target,
        FilesTarget(("/landing/a",), since=7),
        DeltaTarget(3),
        DeltaTarget(3, last_index=0),
        KafkaTarget({"orders": {"0": 5}}),
        BatchTarget(7),
    ],
)
@pytest.mark.parametrize("decision", Decision)
def test_a_plan_is_read_as_it_was_written(ledger, decision, target):
    plan = replace(PLAN, decision=decision, target=target)
    assert ledger.open_run(plan) == plan
    assert ledger.read_run(plan.run_id) == Run(plan)


@pytest.mark.parametrize("outcome", Outcome)
def test_an_attempt_is_read_as_it_was_written(ledger, outcome):
    ledger.open_run(PLAN)
    ledger.record_attempt(PLAN.run_id, replace(ATTEMPT, outcome=outcome))
    assert ledger.read_run(PLAN.run_id).attempt == replace(ATTEMPT, outcome=outcome)


def test_batches_are_read_in_their_order(ledger):
    ledger.open_run(PLAN)
    for batch in (4, 3, 2):
        ledger.record_batch(record(batch))
    assert ledger.read_run(PLAN.run_id).batches == (record(2), record(3), record(4))


def test_a_batch_belongs_to_the_run_that_committed_it(ledger):
    later = replace(PLAN, run_id="later", baseline=Baseline("0deb1b20", 2))
    for plan in (PLAN, later):
        ledger.open_run(plan)
    for batch, run_id in enumerate([PLAN.run_id, "later", PLAN.run_id], start=2):
        ledger.record_batch(record(batch, run_id=run_id))
    assert [batch.batch_id for batch in ledger.read_run(PLAN.run_id).batches] == [2, 4]
    assert [batch.batch_id for batch in ledger.read_run("later").batches] == [3]
    assert [batch.batch_id for batch in ledger.read_batches(after=2)] == [3, 4]


@pytest.mark.parametrize(
    ("announced", "first"),
    [
        (Announcement("0deb1b20", 0), 1),
        (Announcement("0deb1b20", 4), 5),
        (Announcement("another", 4), 2),
        (Announcement(), 2),
        (None, 2),
    ],
)
def test_what_downstream_does_not_know_follows_what_it_was_told(announced, first):
    plan = replace(PLAN, announced=announced)
    assert plan.find_first_untold("0deb1b20", committed=4) == first


def test_without_a_word_to_go_by_at_least_the_newest_batch_is_told():
    idle = replace(PLAN, announced=Announcement(), baseline=Baseline("0deb1b20", 4))
    assert idle.find_first_untold("0deb1b20", committed=4) == 4


def test_batches_of_several_runs_add_up(ledger):
    for batch, run_id in enumerate(["a", "b", "c"]):
        ledger.record_batch(record(batch, run_id=run_id, version=batch))
    assert ledger.sum_up(1, 2) == Summary((1, 2), 22, 20, 0, {"main": 2})
    assert ledger.sum_up(3, 2) == ledger.sum_up(0, None) == Summary((), 0, 0, 0, {})


def test_a_batch_that_nobody_wrote_down_makes_the_rows_unknown(ledger):
    ledger.record_batch(record(0, version=1))
    ledger.record_batch(record(2, version=3))
    assert ledger.sum_up(0, 2) == Summary((0, 1, 2), None, None, None, {"main": 3}, None)


def test_the_newest_attempt_counts_although_an_older_driver_lingers(ledger):
    ledger.open_run(PLAN)
    retry = replace(ATTEMPT, started_at=LATER, outcome=Outcome.RUNNING)
    for attempt in (replace(ATTEMPT, outcome=Outcome.RUNNING), retry, ATTEMPT):
        ledger.record_attempt(PLAN.run_id, attempt)
    assert ledger.read_attempt(PLAN.run_id) == retry


@pytest.mark.parametrize("decision", [Decision.IDLE, Decision.BLOCKED])
def test_a_tick_with_nothing_to_do_takes_no_space(ledger, decision):
    for number in range(3):
        ledger.open_run(replace(PLAN, run_id=f"tick {number}", decision=decision, target=None))
    assert list_names(ledger.folder) == ["latest.json"]


def test_a_replay_overwrites_its_own_record(ledger):
    ledger.open_run(PLAN)
    ledger.record_batch(record(2, rows=10))
    ledger.record_batch(record(2, rows=0))
    assert ledger.read_run(PLAN.run_id).summary.output_rows == 0


def test_failures_that_one_batch_did_not_tell_are_not_known():
    told = replace(record(2), failed={"small": 1})
    assert Run(PLAN, batches=(told, replace(told, batch_id=3))).summary.failed == {"small": 2}
    assert Run(PLAN, batches=(told, replace(told, failed=None))).summary.failed is None


def test_a_run_adds_up_its_batches():
    run = Run(PLAN, batches=(record(2, rows=10, version=3), record(3, rows=20, version=4)))
    assert run.summary == Summary((2, 3), 32, 30, 0, {"main": 4})


def test_rows_that_one_batch_does_not_tell_are_not_guessed():
    run = Run(PLAN, batches=(record(2), replace(record(3), input_rows=None, seconds=None)))
    assert (run.summary.input_rows, run.summary.output_rows) == (None, 20)


def test_a_sink_that_tells_no_rows_makes_them_unknown():
    silent = replace(record(3), sinks={"main": SinkRecord(rows=None, version=None, is_replay=True)})
    run = Run(PLAN, batches=(record(2, rows=10, version=3), silent))
    assert (run.summary.output_rows, run.summary.versions) == (None, {"main": 3})


def test_a_run_without_batches_did_nothing():
    run = Run(PLAN)
    assert (run.summary, run.seconds) == (Summary((), 0, 0, 0, {}), 0)


def test_a_run_that_is_planned_again_counts_from_where_it_began(ledger):
    ledger.open_run(PLAN)
    again = replace(PLAN, target=DeltaTarget(9), baseline=Baseline("0deb1b20", 5), planned_at=LATER)
    kept = replace(again, baseline=PLAN.baseline, planned_at=PLAN.planned_at)
    assert ledger.open_run(again) == kept
    assert ledger.read_run(PLAN.run_id).plan == kept


@pytest.mark.parametrize("decision", [Decision.IDLE, Decision.BLOCKED])
def test_a_run_that_had_not_begun_counts_from_now(ledger, decision):
    ledger.open_run(replace(PLAN, decision=decision, target=None))
    again = replace(PLAN, baseline=Baseline("0deb1b20", 5), planned_at=LATER)
    assert ledger.open_run(again) == again


def test_the_latest_run_is_the_one_planned_last(ledger):
    assert ledger.find_latest() is None
    ledger.open_run(replace(PLAN, run_id="z"))
    ledger.open_run(replace(PLAN, run_id="a"))
    assert ledger.find_latest().plan.run_id == "a"


def test_a_run_that_was_never_planned_is_refused(ledger):
    with pytest.raises(LedgerError, match=r"Run 'x' is not in the ledger .* Check TIDEGATE_STATE"):
        ledger.read_run("x")


@pytest.mark.parametrize(
    "run_id",
    [
        "scheduled__2026-01-01T00:00:00+00:00",
        "a/b",
        "../../etc/passwd",
        "a%2Fb",
        "é 日本",
        "x'; DROP TABLE",
        ".",
        "..",
        "latest.json",
    ],
)
def test_a_run_is_kept_in_a_folder_of_its_own_whatever_it_is_called(store, ledger, run_id):
    ledger.open_run(replace(PLAN, run_id="before"))
    plan = replace(PLAN, run_id=run_id)
    ledger.open_run(plan)
    assert ledger.find_latest() == Run(plan)
    assert ledger.read_run("before").plan.run_id == "before"
    assert list_names(store) == ["runs"]
    folders = set(list_names(ledger.folder)) - {"latest.json"}
    assert [list_names(ledger.folder / folder) for folder in folders] == [["plan.json"]] * 2


@pytest.mark.parametrize(("first", "second"), [("a/b", "a%2Fb"), ("a b", "a+b"), ("A", "a")])
def test_no_two_runs_share_a_folder(ledger, first, second):
    ledger.open_run(replace(PLAN, run_id=first, reason="first"))
    ledger.open_run(replace(PLAN, run_id=second, reason="second"))
    assert ledger.read_run(first).plan.reason == "first"


@pytest.mark.parametrize(
    ("run_id", "folder"),
    [
        (PLAN.run_id, f"run={PLAN.run_id}"),
        ("a/b c", "run=a%2Fb%20c"),
        ("..", "run=.."),
        ("x" * 200, f"run={'x' * 200}"),
        ("x" * 201, f"run={'x' * 200}~84a0678c90937f5d"),
    ],
)
def test_a_folder_is_named_after_its_run(ledger, run_id, folder):
    ledger.open_run(replace(PLAN, run_id=run_id))
    assert sorted(list_names(ledger.folder)) == ["latest.json", folder]


@pytest.mark.parametrize("letter", ["x", "é", "/"])
def test_no_two_long_names_share_a_folder_and_none_is_too_long_for_a_file_system(ledger, letter):
    for last in "ab":
        ledger.open_run(replace(PLAN, run_id=letter * 1000 + last, reason=last))
    assert ledger.read_run(letter * 1000 + "a").plan.reason == "a"
    assert max(len(name) for name in list_names(ledger.folder)) <= 255


def test_what_a_killed_driver_left_half_written_is_no_batch(ledger):
    ledger.open_run(PLAN)
    ledger.record_batch(record(2))
    folder = ledger.folder / "batches"
    (folder / ".3.json.0123456789abcdef.tmp").write_text('{"batch_id": 3')
    assert len(ledger.read_run(PLAN.run_id).batches) == 1


@pytest.mark.parametrize("content", ["", "{", "{}", "[]", '{"run_id": 5}', "\0"])
@pytest.mark.parametrize(
    "name",
    [f"run={PLAN.run_id}/plan.json", f"run={PLAN.run_id}/attempts/1.json", "batches/2.json"],
)
def test_a_broken_ledger_file_is_named_with_its_remedy(tmp_path, name, content):
    ledger = Ledger.beside(UPath(tmp_path))
    ledger.open_run(PLAN)
    ledger.record_batch(record(2))
    ledger.open_run(replace(PLAN, run_id="later", decision=Decision.IDLE, target=None))
    (ledger.folder / name).parent.mkdir(parents=True, exist_ok=True)
    (ledger.folder / name).write_text(content)
    with pytest.raises(
        LedgerError, match=rf"{re.escape(name)} is broken: (?s:.*)Move the file away"
    ):
        ledger.read_run(PLAN.run_id)


@pytest.mark.parametrize("content", ["", "{", "{}", "[1]", '{"run": 5}', '{"run_id": 5}', '"x"'])
def test_a_broken_pointer_to_the_latest_run_is_named_too(tmp_path, content):
    ledger = Ledger.beside(UPath(tmp_path))
    ledger.open_run(PLAN)
    (ledger.folder / "latest.json").write_text(content)
    with pytest.raises(LedgerError, match=r"latest\.json is broken: (?s:.*)Move the file away"):
        ledger.find_latest()
