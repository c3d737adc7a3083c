"""A pipeline at a glance, from the files of a checkpoint and a ledger."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tidegate.core.alerts.alert import Alert
from tidegate.core.alerts.incident import Book, Incidents
from tidegate.core.doctor.fault import Severity
from tidegate.core.fleet.health import Health, read_health
from tidegate.core.fleet.history import read_history
from tidegate.core.ledger import (
    Attempt,
    BatchRecord,
    Decision,
    Ledger,
    Metrics,
    Outcome,
    Plan,
    SinkRecord,
)
from tidegate.core.spec.alerts import Rule
from tidegate.core.spec.loader import load_specs
from tidegate.core.target import FilesTarget, KafkaTarget
from tidegate.core.waiting import Unit, Waiting

PLANNED = "2026-11-18T12:00:00.000+00:00"
COMMITTED = "2026-11-18T12:01:00.000+00:00"
PLAN = Plan(
    run_id="run",
    decision=Decision.RUN,
    reason="90 records wait",
    planned_at=PLANNED,
    target=KafkaTarget({"orders": {"0": 30, "1": 60}}),
    waiting={"0": Waiting(Unit.RECORDS, 90, 120.0, 86_400.0)},
)
ENDS = [{"orders": {"0": 10, "1": 20}}, {"orders": {"0": 30, "1": 60}}]
SPEC = """
name: orders
description: Orders as they came.
source: {type: kafka, topics: [orders], max_offsets_per_trigger: 10, value: {format: string}}
sinks: [{type: delta, table: bronze/orders}]
"""


def record(batch, **more):
    given = BatchRecord(
        batch_id=batch,
        run_id="run",
        input_rows=100,
        seconds=2.0,
        committed_at=COMMITTED,
        sources=[{"startOffset": None, "endOffset": ENDS[batch]}],
        sinks={"main": SinkRecord(90, batch)},
        quarantined=10,
        metrics=Metrics(phases_ms={"addBatch": 1500}, state_bytes=512),
    )
    return replace(given, **more)


@pytest.fixture
def spec(settings):
    settings.pipelines.mkdir()
    (settings.pipelines / "orders.yaml").write_text(SPEC)
    [spec] = load_specs(settings.pipelines)
    return spec


@pytest.fixture
def ledger(settings):
    return Ledger.beside(settings.state_of("orders"))


@pytest.fixture
def committed(checkpoint_of, ledger):
    """A run that reached its target in two batches."""
    checkpoint_of("orders").batch(0, ENDS[0]).batch(1, ENDS[1])
    ledger.open_run(PLAN)
    ledger.record_attempt("run", Attempt(Outcome.SUCCEEDED, PLANNED, COMMITTED))
    for batch in (0, 1):
        ledger.record_batch(record(batch))


def test_a_pipeline_that_never_ran_is_new(spec, settings):
    found = read_health(spec, settings)
    assert (found.health, found.state, found.batch) == (Health.NEW, "never_ran", None)
    assert found.description == "Orders as they came."


@pytest.mark.usefixtures("committed")
def test_a_run_that_reached_its_target_is_told_by_its_newest_batch(spec, settings):
    found = read_health(spec, settings)
    assert (found.health, found.state, found.batch) == (Health.OK, "committed", 1)
    assert (found.committed_at, found.rows, found.rows_per_second) == (COMMITTED, 100, 50.0)
    assert (found.quarantine_share, found.state_bytes) == (0.1, 512)
    assert (found.lag.count, found.lag.seconds, found.lag.measured_at) == (0, 0.0, COMMITTED)


def test_what_waited_is_told_until_the_target_is_reached(spec, settings, checkpoint_of, ledger):
    checkpoint_of("orders").batch(0, ENDS[0])
    ledger.open_run(PLAN)
    lag = read_health(spec, settings).lag
    assert (lag.unit, lag.count, lag.seconds, lag.headroom_seconds) == (
        "records",
        90,
        120.0,
        86_400.0,
    )
    assert lag.measured_at == PLANNED


@pytest.mark.usefixtures("committed")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"warning": "3 files are too old"}, "3 files are too old"),
        ({"waiting": {"0": Waiting(Unit.RECORDS, 5, 9.0, 600.0)}}, "kept for 10 minutes more"),
    ],
)
def test_what_somebody_should_know_makes_a_warning(spec, settings, ledger, change, told):
    ledger.open_run(replace(PLAN, run_id="next", decision=Decision.IDLE, target=None, **change))
    found = read_health(spec, settings)
    assert found.health is Health.WARNING
    assert told in found.notes[0]


@pytest.mark.usefixtures("committed")
def test_a_batch_that_nobody_works_on_is_pending(spec, settings, checkpoint_of):
    checkpoint_of("orders").offset(2, ENDS[1])
    found = read_health(spec, settings)
    assert (found.pending_batch, found.health) == (2, Health.WARNING)


@pytest.mark.usefixtures("committed")
def test_a_failed_driver_is_an_error(spec, settings, ledger):
    ledger.record_attempt("run", Attempt(Outcome.FAILED, COMMITTED, COMMITTED, "It broke."))
    found = read_health(spec, settings)
    assert (found.health, found.state, found.reason) == (Health.ERROR, "failed", "It broke.")


@pytest.mark.usefixtures("committed")
def test_a_broken_ledger_is_an_error_and_hides_nothing_else(spec, settings, ledger):
    (ledger.folder / "latest.json").write_text("{")
    found = read_health(spec, settings)
    assert (found.health, found.state, found.batch) == (Health.ERROR, "unknown", 1)


def test_a_spec_with_a_mistake_is_an_error(settings):
    settings.pipelines.mkdir()
    (settings.pipelines / "orders.yaml").write_text("name: orders")
    [broken] = load_specs(settings.pipelines)
    assert read_health(broken, settings).state == "invalid"


@pytest.mark.usefixtures("committed")
def test_the_history_tells_what_each_batch_left_of_the_target(ledger):
    history = read_history(ledger, 1, 10)
    assert [(point.batch_id, point.lag) for point in history.batches] == [(1, 0), (0, 60)]
    assert [point.planned_lag.count for point in history.batches] == [90, 90]
    assert history.next_before is None


@pytest.mark.usefixtures("committed")
def test_the_history_comes_in_pages(ledger):
    page = read_history(ledger, 1, 1)
    assert ([point.batch_id for point in page.batches], page.next_before) == ([1], 1)
    rest = read_history(ledger, page.next_before - 1, 1)
    assert ([point.batch_id for point in rest.batches], rest.next_before) == ([0], None)


@pytest.mark.usefixtures("committed")
def test_a_batch_that_a_sink_already_had_is_marked(ledger):
    ledger.record_batch(record(1, sinks={"main": SinkRecord(None, 1, is_replay=True)}))
    assert [point.is_replay for point in read_history(ledger, 1, 10).batches] == [True, False]


@pytest.mark.usefixtures("committed")
def test_a_record_of_before_metrics_has_a_point_too(ledger):
    ledger.record_batch(record(1, metrics=None, input_rows=None, seconds=None))
    point = read_history(ledger, 1, 1).batches[0]
    assert (point.phases_ms, point.rows_per_second, point.state_bytes) == ({}, None, 0)


def test_what_the_alerts_noticed_is_shown_until_it_is_over(spec, settings, checkpoint_of):
    checkpoint_of(spec.name).batches(1)
    book = Incidents.beside(settings.state_of(spec.name))
    alert = Alert(Rule.LATE_ROWS, Severity.WARNING, "5 rows came late.", "Look at the watermark.")
    begun = Book().update([alert], (), (), datetime(2026, 1, 1, tzinfo=UTC))
    book.write(begun)
    found = read_health(spec, settings)
    assert found.health is Health.WARNING
    (incident,) = found.incidents
    assert (incident.rule, incident.message) == (
        "late_rows",
        "5 rows came late. Look at the watermark.",
    )
    book.write(begun.update([], (), (), datetime(2026, 1, 2, tzinfo=UTC)))
    assert read_health(spec, settings).incidents == ()


def test_a_file_source_s_log_tells_which_files_each_batch_left(ledger, local_checkpoint):
    local_checkpoint.batches(3)
    paths = tuple(f"/landing/{batch}.json" for batch in range(3))
    ledger.open_run(replace(PLAN, target=FilesTarget(paths)))
    for batch in range(3):
        ends = [{"startOffset": None, "endOffset": {"logOffset": batch}}]
        ledger.record_batch(replace(record(0), batch_id=batch, sources=ends))
    history = read_history(ledger, 2, 10, local_checkpoint.path)
    assert [point.lag for point in history.batches] == [0, 1, 2]
    assert [point.lag for point in read_history(ledger, 2, 10).batches] == [None] * 3
