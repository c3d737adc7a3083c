"""One pipeline: its position, batches, spec, findings and what it put aside."""

import asyncio
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tidegate.core.ledger import BatchRecord, Ledger, SinkRecord

KAFKA = {
    "type": "kafka",
    "topics": ["orders"],
    "max_offsets_per_trigger": 10,
    "value": {"format": "string"},
}


def record(ledger, batch):
    offsets = [{"startOffset": None, "endOffset": {"logOffset": batch}}]
    sinks = {"main": SinkRecord(5, batch)}
    moment = "2026-11-18T12:00:00+00:00"
    ledger.record_batch(BatchRecord(batch, "run", 5, 1.0, moment, offsets, sinks))


def test_a_pipeline_stands_where_its_checkpoint_says(read, add_pipeline, checkpoint_of):
    add_pipeline("orders", source=KAFKA)
    checkpoint_of("orders").batch(0, {"orders": {"0": 5, "1": 7}}).offset(
        1, {"orders": {"0": 9, "1": 7}}
    )
    found = read("/api/pipelines/orders")
    [position] = found["positions"]
    assert position["kind"] == "kafka"
    assert position["partitions"] == [
        {"topic": "orders", "partition": 0, "committed": 5, "planned": 9},
        {"topic": "orders", "partition": 1, "committed": 7, "planned": 7},
    ]
    assert found["health"]["pending_batch"] == 1


def test_batches_come_newest_first_in_pages(read, add_pipeline, checkpoint_of, settings):
    add_pipeline("orders")
    checkpoint_of("orders").batches(5)
    ledger = Ledger.beside(settings.state_of("orders"))
    for batch in range(5):
        record(ledger, batch)

    def page(query):
        history = read(f"/api/pipelines/orders/batches?{query}")["history"]
        return [point["batch_id"] for point in history["batches"]], history["next_before"]

    assert page("limit=2") == ([4, 3], 3)
    assert page("limit=2&before=3") == ([2, 1], 1)
    assert page("limit=2&before=1") == ([0], None)
    assert page("before=0") == ([], None)


def test_a_spec_is_shown_as_written(read, add_pipeline, monkeypatch):
    monkeypatch.setenv("OWNER", "a-secret")
    add_pipeline("orders", owner="${OWNER}")
    text = read("/api/pipelines/orders/spec")["text"]
    assert "${OWNER}" in text
    assert "a-secret" not in text


def test_no_answer_tells_what_a_variable_stands_for(viewer, add_pipeline, monkeypatch):
    monkeypatch.setenv("OWNER", "a-secret")
    add_pipeline("orders", owner="${OWNER}")
    for route in ("", "/spec", "/batches", "/doctor", "/lag", "/quarantine"):
        assert "a-secret" not in viewer.get(f"/tidegate/api/pipelines/orders{route}").text


def test_the_doctor_tells_what_is_wrong_and_what_to_do(read, add_pipeline, checkpoint_of):
    add_pipeline("orders")
    checkpoint_of("orders").batches(2).delete("offsets/1")
    found = read("/api/pipelines/orders/doctor")
    assert found["is_healthy"] is False
    assert any("offsets" in fault["file"] for fault in found["faults"])
    assert all(fault["remedy"] for fault in found["faults"] if fault["severity"] == "error")


def test_a_broker_that_cannot_be_asked_is_told(read, add_pipeline):
    add_pipeline("orders", source=KAFKA)
    found = read("/api/pipelines/orders/lag")
    assert found["partitions"] == []
    assert "There is no connection 'kafka_default'" in found["problem"]


def test_what_was_put_aside_is_shown(read, add_pipeline, settings):
    add_pipeline("orders")
    put_aside = {
        "rule": "positive",
        "sink": "main",
        "run_id": "run",
        "batch_id": 1,
        "topic": None,
        "partition": None,
        "offset": None,
        "file": "/landing/a.json",
        "reason": "amount > 0",
        "row": "x" * 5000,
        "value": None,
        "quarantined_at": datetime(2026, 11, 18, 12, tzinfo=UTC),
    }
    types = {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64()}
    table = pa.table(
        {
            name: pa.array([value], types.get(name, pa.binary() if name == "value" else None))
            for name, value in put_aside.items()
        }
    )
    write_deltalake(Path(settings.data) / "quarantine/orders", table)
    found = read("/api/pipelines/orders/quarantine")
    [tally], [row] = found["tallies"], found["rows"]
    assert (tally["rule"], tally["rows"]) == ("positive", 1)
    assert (row["place"], row["reason"]) == ("/landing/a.json", "amount > 0")
    assert len(row["content"]) == 2000


def test_a_spec_with_a_mistake_is_told(viewer, add_pipeline):
    add_pipeline("broken", sinks=[])
    answer = viewer.get("/tidegate/api/pipelines/broken")
    assert answer.status_code == 409
    assert "sinks" in answer.json()["detail"]


def test_what_is_slow_keeps_nobody_else_waiting(plugin_app, monkeypatch):
    """A broker that does not answer must not stop the server's event loop."""
    from tidegate.airflow.plugin import deployment as module

    answer = threading.Event()
    monkeypatch.setattr(module, "examine_pipeline", lambda *_: answer.wait(20) and [])
    deployment = plugin_app.state.deployment
    spec = pytest.MonkeyPatch()
    spec.setattr(deployment, "list_specs", lambda: {"orders": _Sound()})

    async def ask() -> float:
        examined = asyncio.create_task(deployment.examine("orders"))
        began = time.monotonic()
        await asyncio.sleep(0.05)
        passed = time.monotonic() - began
        answer.set()
        assert await examined == []
        return passed

    try:
        assert asyncio.run(ask()) < 5
    finally:
        spec.undo()


class _Sound:
    def require(self) -> None:
        return None
