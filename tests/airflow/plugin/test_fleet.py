"""The fleet: what each pipeline is like, in pages, quickly, and once for all who ask."""

import shutil
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client.parser import text_string_to_metric_families

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
from tidegate.core.target import FilesTarget
from tidegate.core.waiting import Unit, Waiting

MANY = 500
MOMENT = "2026-11-18T12:00:00.000+00:00"


@pytest.fixture
def commit(settings, checkpoint_of):
    """Let a pipeline have committed some batches of a file each."""

    def commit(name, batches=2):
        checkpoint_of(name).batches(batches)
        ledger = Ledger.beside(settings.state_of(name))
        paths = tuple(f"/landing/{batch}.json" for batch in range(batches))
        waiting = {"0": Waiting(Unit.FILES, batches, 60.0)}
        target = FilesTarget(paths)
        plan = Plan("run", Decision.RUN, "files to read", MOMENT, target, waiting=waiting)
        ledger.open_run(plan)
        ledger.record_attempt("run", Attempt(Outcome.SUCCEEDED, MOMENT, MOMENT))
        for batch in range(batches):
            offsets = [{"startOffset": None, "endOffset": {"logOffset": batch}}]
            sinks = {"main": SinkRecord(100, batch)}
            metrics = Metrics(phases_ms={"addBatch": 900})
            record = BatchRecord(
                batch, "run", 100, 2.0, MOMENT, offsets, sinks, metrics=metrics, quarantined=25
            )
            ledger.record_batch(record)

    return commit


def test_a_pipeline_is_told_in_full(read, add_pipeline, commit):
    add_pipeline("orders")
    commit("orders")
    [found] = read("/api/fleet")["pipelines"]
    assert found["health"] == "ok"
    assert (found["state"], found["batch"], found["pending_batch"]) == ("committed", 1, None)
    assert (found["rows_per_second"], found["quarantine_share"]) == (50.0, 0.25)
    assert found["lag"] | {"measured_at": None} == {
        "unit": "files",
        "count": 0,
        "seconds": 0.0,
        "headroom_seconds": None,
        "measured_at": None,
    }
    assert found["incidents"] == []


def test_the_fleet_comes_in_pages_and_can_be_searched(read, add_pipeline):
    for number in range(5):
        add_pipeline(f"orders_{number}")
    add_pipeline("clicks")

    def names(query):
        page = read(f"/api/fleet?{query}")
        return page["total"], [one["pipeline"] for one in page["pipelines"]]

    assert names("limit=2") == (6, ["clicks", "orders_0"])
    assert names("limit=2&offset=4") == (6, ["orders_3", "orders_4"])
    assert names("search=CLI") == (1, ["clicks"])
    assert names("offset=99") == (6, [])


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "offset=-1", f"search={'x' * 201}"])
def test_a_page_that_makes_no_sense_is_refused(viewer, query):
    assert viewer.get(f"/tidegate/api/fleet?{query}").status_code == 422


def test_a_spec_with_a_mistake_is_shown_and_hides_no_other(read, add_pipeline, deployment):
    add_pipeline("orders")
    add_pipeline("broken", sinks=[])
    states = {one["pipeline"]: one["state"] for one in read("/api/fleet")["pipelines"]}
    assert states == {"broken": "invalid", "orders": "never_ran"}


def test_a_new_spec_is_seen_without_a_restart(read, add_pipeline, plugin_app, settings):
    from tidegate.airflow.plugin.deployment import Deployment

    add_pipeline("orders")
    assert read("/api/pipelines/orders")["source_types"] == ["files"]
    add_pipeline("clicks")
    assert read("/api/pipelines/clicks")["source_types"] == ["files"]
    plugin_app.state.deployment = Deployment(settings)
    assert read("/api/fleet")["total"] == 2


def test_500_pipelines_are_told_within_two_seconds(
    viewer, write_spec, register, commit, settings, plugin_app
):
    names = [f"p{number:03}" for number in range(MANY)]
    commit(names[0], batches=3)
    for name in names:
        write_spec(name)
        if name != names[0]:
            shutil.copytree(str(settings.state_of(names[0])), str(settings.state_of(name)))
    register(*names)
    plugin_app.state.deployment.list_specs()  # as they are once the server has started
    began = time.process_time()  # the server is this process, and others may be busy too
    page = viewer.get("/tidegate/api/fleet?limit=500").json()
    seconds = time.process_time() - began
    assert [one["pipeline"] for one in page["pipelines"]] == names
    assert {one["state"] for one in page["pipelines"]} == {"committed"}
    assert seconds < 2
    began = time.process_time()
    viewer.get("/tidegate/api/fleet?limit=500")
    assert time.process_time() - began < seconds / 2  # remembered


def test_many_who_ask_at_once_cost_one_reading(plugin_app, add_pipeline, monkeypatch):
    from tidegate.airflow.plugin import deployment as module

    add_pipeline("orders")
    read_fleet, count = module.read_fleet, []

    def read_slowly(*arguments):
        count.append(1)
        time.sleep(0.2)
        return read_fleet(*arguments)

    monkeypatch.setattr(module, "read_fleet", read_slowly)
    with ThreadPoolExecutor(8) as pool:
        fleets = list(pool.map(lambda _: plugin_app.state.deployment.read_fleet(), range(8)))
    assert len(count) == 1
    assert all(fleet is fleets[0] for fleet in fleets)


def test_prometheus_reads_the_same(viewer, add_pipeline, commit):
    add_pipeline("orders")
    add_pipeline("clicks")
    commit("orders")
    answer = viewer.get("/tidegate/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    orders = ("pipeline", "orders")
    assert samples["tidegate_committed_batch", orders] == 1
    assert samples["tidegate_quarantine_share", orders] == 0.25
    assert samples["tidegate_last_commit_timestamp_seconds", orders] == 1795003200
    assert samples["tidegate_lag", orders, ("unit", "files")] == 0
    assert samples["tidegate_health", ("health", "ok"), orders] == 1
    assert samples["tidegate_health", ("health", "new"), ("pipeline", "clicks")] == 1
    assert ("tidegate_committed_batch", ("pipeline", "clicks")) not in samples
