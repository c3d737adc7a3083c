"""What a sensor waits for: reached, still waiting, or never to be."""

import os
import time
from dataclasses import replace

import pytest
from pydantic import ValidationError
from upath import UPath

from tidegate.core import condition as module
from tidegate.core.condition import (
    BatchAtLeast,
    CommittedWithin,
    Covers,
    NothingPending,
    RunReached,
    Verdict,
    WatermarkAtLeast,
    dump_conditions,
    judge,
    parse_conditions,
)
from tidegate.core.ledger import (
    Attempt,
    Baseline,
    BatchRecord,
    Decision,
    Ledger,
    Outcome,
    Plan,
    Stop,
)
from tidegate.core.target import (
    AllTargets,
    BatchTarget,
    DeltaTarget,
    DrainTarget,
    FilesTarget,
    KafkaTarget,
)

RUNNING = Attempt(Outcome.RUNNING, "2026-11-16T03:49:12.000+00:00")
SUCCEEDED = replace(RUNNING, outcome=Outcome.SUCCEEDED)
FAILED = replace(RUNNING, outcome=Outcome.FAILED, error="The query failed: disk full.")
KAFKA = KafkaTarget({"orders": {"0": 200}})


@pytest.fixture
def run(checkpoint):
    """Plan a run beside the checkpoint; return what records the driver's attempt on it."""
    ledger = Ledger.beside(checkpoint.path.parent)

    def plan(target, baseline=None, decision=Decision.RUN, attempt=None):
        planned_at = "2026-11-16T03:49:11.000+00:00"
        baseline = baseline or Baseline()
        ledger.open_run(Plan("run/1", decision, "no new files", planned_at, target, baseline))
        if attempt:
            ledger.record_attempt("run/1", attempt)
        return ledger

    return plan


def judge_run(checkpoint):
    return judge(checkpoint.path, [RunReached("run/1")])


def test_conditions_survive_json():
    conditions = [
        Covers(FilesTarget(("/a b",), source="1")),
        Covers(KAFKA),
        BatchAtLeast(3),
        NothingPending(),
        CommittedWithin(1.5),
        WatermarkAtLeast(99),
        RunReached("run/1"),
    ]
    assert parse_conditions(dump_conditions(conditions)) == conditions


@pytest.mark.parametrize("value", [[{"kind": "x"}], [{"kind": "covers"}], [{}], {}])
def test_what_is_no_condition_is_refused(value):
    with pytest.raises(ValidationError):
        parse_conditions(value)


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (Covers(BatchTarget(2)), "batch 1 is committed, batch 2 is not"),
        (BatchAtLeast(2), "batch 2 is not committed; the newest commit is 1"),
        (NothingPending(), "batch 2 is pending"),
        (WatermarkAtLeast(10), "the watermark is 7, below 10"),
    ],
)
def test_a_pending_batch_is_waited_for_until_its_commit(checkpoint, condition, reason):
    checkpoint.batch(0).offset(1).commit(1, watermark_ms=7).offset(2, watermark_ms=99)
    waiting = judge(checkpoint.path, [condition])
    assert (waiting.verdict, waiting.reason) == (Verdict.WAITING, reason)
    checkpoint.commit(2, watermark_ms=10)
    assert judge(checkpoint.path, [condition]).verdict is Verdict.REACHED


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        (Covers(BatchTarget(0)), "nothing is committed yet"),
        (BatchAtLeast(0), "batch 0 is not committed; the newest commit is None"),
        (NothingPending(), "the query never ran"),
        (WatermarkAtLeast(0), "the watermark is None, below 0"),
        (CommittedWithin(60), "no commit yet"),
    ],
)
def test_a_query_that_never_ran_meets_no_condition(checkpoint, condition, reason):
    judgement = judge(checkpoint.path, [condition])
    assert (judgement.verdict, judgement.reason) == (Verdict.WAITING, reason)


@pytest.mark.parametrize(
    ("age", "verdict"),
    [(0, Verdict.REACHED), (50, Verdict.REACHED), (70, Verdict.WAITING), (9999, Verdict.WAITING)],
)
def test_the_newest_commit_must_be_young_enough(local_checkpoint, age, verdict):
    local_checkpoint.batch(0).batch(1).offset(2)
    then = time.time() - age
    os.utime(local_checkpoint.path / "commits" / "1", (then, then))
    judgement = judge(local_checkpoint.path, [CommittedWithin(60)])
    assert judgement.verdict is verdict
    assert verdict is Verdict.REACHED or f"the newest commit is {age} s old" in judgement.reason


def test_the_age_of_a_commit_is_known_on_any_store(checkpoint):
    checkpoint.batch(0)
    assert judge(checkpoint.path, [CommittedWithin(60)]).verdict is Verdict.REACHED
    assert judge(checkpoint.path, [CommittedWithin(-60)]).verdict is Verdict.WAITING


def test_all_conditions_must_hold(checkpoint):
    checkpoint.batch(0)
    assert judge(checkpoint.path, [NothingPending(), BatchAtLeast(0)]).verdict is Verdict.REACHED
    unmet = judge(checkpoint.path, [NothingPending(), BatchAtLeast(1), WatermarkAtLeast(5)])
    assert (unmet.verdict, unmet.reason[:7]) == (Verdict.WAITING, "batch 1")


def test_the_progress_that_was_judged_is_handed_on(checkpoint):
    checkpoint.batch(0).offset(1)
    assert judge(checkpoint.path, [BatchAtLeast(0)]).progress.planned_batch == 1


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda checkpoint: checkpoint.cut("commits/1", 0), "commits/1 is corrupt"),
        (lambda checkpoint: checkpoint.delete("offsets/1"), "Do not restart the query"),
        (lambda checkpoint: checkpoint.delete("metadata"), "metadata is corrupt"),
        (lambda checkpoint: checkpoint.write("commits/1", "v9"), "Upgrade tidegate"),
        (lambda checkpoint: checkpoint.cut("sources/0/1", 10), "sources/0/1 is corrupt"),
        (lambda checkpoint: checkpoint.write("sources/0/1", "v9"), "Upgrade tidegate"),
    ],
    ids=["cut commit", "commit ahead", "no metadata", "newer", "cut file log", "newer file log"],
)
def test_a_broken_checkpoint_fails_with_its_reason(checkpoint, damage, reason):
    damage(checkpoint.batches(2))
    target = FilesTarget(("/landing/0.json",))
    judgement = judge(checkpoint.path, [BatchAtLeast(0), Covers(target)])
    assert judgement.verdict is Verdict.FAILED
    assert reason in judgement.reason


def test_an_obstacle_to_the_next_start_is_none_to_what_is_committed(checkpoint):
    checkpoint.batches(3).delete("offsets/1")
    conditions = [BatchAtLeast(2), NothingPending(), Covers(FilesTarget(("/landing/2.json",)))]
    judgement = judge(checkpoint.path, conditions)
    assert judgement.verdict is Verdict.REACHED
    assert "offsets/1 is missing" in judgement.progress.obstacle


def test_a_run_that_was_never_planned_fails(checkpoint):
    judgement = judge_run(checkpoint.batch(0))
    assert judgement.verdict is Verdict.FAILED
    assert "'run/1' is not in the ledger" in judgement.reason


def test_a_file_is_no_checkpoint(tmp_path):
    (tmp_path / "checkpoint").write_text("x")
    judgement = judge(UPath(tmp_path / "checkpoint"), [NothingPending()])
    assert judgement.verdict is Verdict.FAILED
    assert "is a file, and a checkpoint is a folder" in judgement.reason


@pytest.mark.parametrize("attempt", [None, RUNNING])
def test_a_run_is_waited_for_while_its_job_works(checkpoint, run, attempt):
    run(FilesTarget(("/landing/2.json",)), Baseline(checkpoint.query_id, 1), attempt=attempt)
    checkpoint.batches(2).log_files(2, "/landing/2.json").offset(2)
    assert judge_run(checkpoint).verdict is Verdict.WAITING


@pytest.mark.parametrize("attempt", [None, RUNNING, SUCCEEDED, FAILED])
def test_a_run_is_reached_by_its_commits_whatever_became_of_the_job(checkpoint, run, attempt):
    run(FilesTarget(("/landing/0.json", "/landing/2.json")), attempt=attempt)
    assert judge_run(checkpoint.batches(3)).verdict is Verdict.REACHED


@pytest.mark.parametrize(
    ("attempt", "said"),
    [(SUCCEEDED, "The job ended without"), (FAILED, "It said: The query failed: disk full.")],
)
def test_a_job_that_ended_short_fails_its_run_in_words(checkpoint, run, attempt, said):
    run(KAFKA, attempt=attempt)
    checkpoint.batch(0, {"orders": {"0": 150}})
    judgement = judge_run(checkpoint)
    assert judgement.verdict is Verdict.FAILED
    assert said in judgement.reason
    assert "orders-0 at 150 of 200" in judgement.reason
    assert "Clear the submit task to go on from the last commit." in judgement.reason


def test_a_job_that_ended_in_the_middle_of_many_batches_is_not_done(checkpoint, run):
    run(FilesTarget(tuple(f"/landing/{n}.json" for n in range(9))), attempt=FAILED)
    checkpoint.batches(5).log_files(5, "/landing/5.json").offset(5)
    judgement = judge_run(checkpoint)
    assert judgement.verdict is Verdict.FAILED
    assert "4 of 9 files are not committed" in judgement.reason


@pytest.mark.parametrize(("batch", "verdict"), [(1, Verdict.REACHED), (2, Verdict.FAILED)])
def test_a_job_that_stopped_by_its_budget_has_done_its_part(checkpoint, run, batch, verdict):
    checkpoint.batch(0, {"orders": {"0": 50}}).batch(1, {"orders": {"0": 100}})
    stop = Stop("budget.max_batches of 2 is used up", batch)
    run(KAFKA, attempt=replace(SUCCEEDED, stop=stop))
    judgement = judge_run(checkpoint)
    assert judgement.verdict is verdict
    if verdict is Verdict.REACHED:
        assert judgement.reason == "budget.max_batches of 2 is used up; the next run goes on"


def test_a_job_that_stopped_by_its_budget_was_not_at_the_end(checkpoint, run):
    checkpoint.batches(2)
    run(DrainTarget(), attempt=replace(SUCCEEDED, stop=Stop("used up", 1)))
    assert judge_run(checkpoint).reason == "used up; the next run goes on"


def test_a_job_that_ends_while_it_is_judged_has_not_ended_short(checkpoint, run, monkeypatch):
    ledger = run(BatchTarget(1), attempt=RUNNING)
    checkpoint.batch(0).offset(1)
    read_progress = module.read_progress

    def read_and_end(path):
        progress = read_progress(path)
        checkpoint.commit(1)
        ledger.record_attempt("run/1", SUCCEEDED)
        return progress

    monkeypatch.setattr(module, "read_progress", read_and_end)
    assert judge_run(checkpoint).verdict is not Verdict.FAILED


@pytest.mark.parametrize("target", [DrainTarget(), AllTargets((BatchTarget(1), DrainTarget("1")))])
@pytest.mark.parametrize(
    ("attempt", "verdict"),
    [
        (None, Verdict.WAITING),
        (RUNNING, Verdict.WAITING),
        (FAILED, Verdict.FAILED),
        (SUCCEEDED, Verdict.REACHED),
    ],
)
def test_where_only_spark_knows_the_end_the_job_must_say_that_it_was_there(
    checkpoint, run, target, attempt, verdict
):
    checkpoint.batch(0).batch(1)
    run(target, attempt=attempt)
    assert judge_run(checkpoint).verdict is verdict


def test_a_job_that_says_it_was_at_the_end_is_not_believed_while_a_batch_is_pending(
    checkpoint, run
):
    checkpoint.batch(0).offset(1)
    run(DrainTarget(), attempt=SUCCEEDED)
    judgement = judge_run(checkpoint)
    assert judgement.verdict is Verdict.FAILED
    assert "batch 1 is pending" in judgement.reason


def test_a_job_that_found_nothing_at_all_was_at_the_end(checkpoint, run):
    run(DrainTarget(), attempt=SUCCEEDED)
    assert judge_run(checkpoint).verdict is Verdict.REACHED


@pytest.mark.parametrize("decision", [Decision.IDLE, Decision.BLOCKED])
def test_a_run_without_a_target_is_never_reached(checkpoint, run, decision):
    run(None, decision=decision)
    judgement = judge_run(checkpoint.batch(0))
    assert judgement.verdict is Verdict.FAILED
    assert f"The run was planned as {decision}: no new files" in judgement.reason


@pytest.mark.parametrize(
    "baseline",
    [Baseline("another query", 1), Baseline("another query", None)],
    ids=["other query", "other query that never committed"],
)
def test_a_replaced_checkpoint_is_never_success(checkpoint, run, baseline):
    run(BatchTarget(1), baseline)
    judgement = judge_run(checkpoint.batches(3))
    assert judgement.verdict is Verdict.FAILED
    assert "The checkpoint was replaced since the run was planned" in judgement.reason
    assert "start a new run" in judgement.reason


@pytest.mark.parametrize(
    ("committed", "left"),
    [(5, 3), (5, 0), (1, 0), (0, 0)],
    ids=["some", "all of many", "all of two", "the only one"],
)
def test_commits_that_vanished_are_a_replaced_checkpoint(checkpoint, run, committed, left):
    run(BatchTarget(committed + 1), Baseline(checkpoint.query_id, committed))
    judgement = judge_run(checkpoint.metadata().batches(left))
    assert judgement.verdict is Verdict.FAILED
    assert "was replaced" in judgement.reason


def test_a_first_run_has_nothing_to_be_replaced(checkpoint, run):
    run(BatchTarget(0), Baseline(None, None))
    assert judge_run(checkpoint).verdict is Verdict.WAITING
    assert judge_run(checkpoint.batch(0)).verdict is Verdict.REACHED


def test_a_baseline_that_was_purged_since_is_no_replacement(checkpoint, run):
    run(FilesTarget(("/landing/30.json",)), Baseline(checkpoint.query_id, 3), attempt=RUNNING)
    assert judge_run(checkpoint.batches(30).purge(20)).verdict is Verdict.WAITING
    checkpoint.log_files(30, "/landing/30.json").batch(30).purge(21)
    assert judge_run(checkpoint).verdict is Verdict.REACHED


def record(ledger, batch, *ends):
    seen = [{"startOffset": None, "endOffset": end} for end in ends]
    at = "2026-11-16T03:49:20+00:00"
    ledger.record_batch(BatchRecord(batch, "run/1", 150, 1.0, at, seen, {}))


@pytest.mark.parametrize("attempt", [None, RUNNING, SUCCEEDED])
def test_an_offset_that_the_ledger_contradicts_is_never_success(checkpoint, run, attempt):
    record(run(KAFKA, attempt=attempt), 0, {"orders": {"0": 150}})
    checkpoint.batch(0, {"orders": {"0": 950}})  # a flipped digit
    judgement = judge_run(checkpoint)
    assert judgement.verdict is Verdict.FAILED
    assert judgement.reason == (
        'offsets/0 is not what the driver committed: it says {"orders": {"0": 950}}, '
        'the ledger {"orders": {"0": 150}}. Restore the checkpoint from a backup.'
    )


def test_a_source_that_the_ledger_does_not_know_is_never_success(checkpoint, run):
    record(run(BatchTarget(0)), 0, 5)
    assert judge_run(checkpoint.batch(0, 5, 6)).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    "ends",
    [[{"orders": {"0": 250}}], [{"orders": {"0": 250}}, {"logOffset": 3}], [None, 7]],
    ids=["one source", "two sources", "a source without a position"],
)
def test_an_offset_that_the_ledger_confirms_is_reached(checkpoint, run, ends):
    record(run(BatchTarget(0)), 0, *ends)
    assert judge_run(checkpoint.batch(0, *ends)).verdict is Verdict.REACHED


def test_only_the_newest_committed_batch_is_compared_with_the_ledger(checkpoint, run):
    ledger = run(BatchTarget(1))
    record(ledger, 0, {"logOffset": 99})
    record(ledger, 2, {"logOffset": 99})
    assert judge_run(checkpoint.batch(0).batch(1)).verdict is Verdict.REACHED


def test_a_table_is_read_once_its_snapshot_is(checkpoint, run):
    run(DeltaTarget(3), attempt=RUNNING)
    checkpoint.batch(0, checkpoint.delta(3, index=4, starting=True))
    assert judge_run(checkpoint).verdict is Verdict.WAITING
    checkpoint.batch(1, checkpoint.delta(4))
    assert judge_run(checkpoint).verdict is Verdict.REACHED
