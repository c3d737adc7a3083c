"""The demo, on a whole Airflow: scheduler, DAG processor, triggerer and API server."""

import json
from decimal import Decimal

import httpx
import pytest

from tests.e2e.home import Home

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.timeout(1200),
]


def count_landed(home: Home) -> tuple[int, dict[int, Decimal]]:
    """Count what landed, by nothing but json: lines, and valid orders with their amounts."""
    lines = 0
    orders: dict[int, Decimal] = {}
    for file in sorted((home.data / "landing" / "orders").glob("*.json")):
        for line in file.read_text().splitlines():
            lines += 1
            try:
                order = json.loads(line, parse_float=Decimal)
            except ValueError:
                continue
            if order["quantity"] > 0:
                amount = order["quantity"] * Decimal(order["unit_price"])
                orders.setdefault(order["order_id"], amount)
    return lines, orders


def await_state(api: httpx.Client, run_id: str, states: set[str], timeout_seconds: float) -> str:
    import time

    deadline = time.monotonic() + timeout_seconds
    while True:
        task = api.get(f"/dags/watcher/dagRuns/{run_id}/taskInstances/wait").json()
        if task["state"] in states:
            return task["state"]
        assert time.monotonic() < deadline, task
        time.sleep(0.5)


def await_commit_told(api: httpx.Client, batch: int, timeout_seconds: float) -> list[dict]:
    """Wait until an event of the watched asset told of a batch, and a run was started by it."""
    import time

    deadline = time.monotonic() + timeout_seconds
    while True:
        runs = api.get("/dags/follower/dagRuns").json()["dag_runs"]
        events = [
            event["extra"]["payload"]
            for run in runs
            for event in api.get(
                f"/dags/follower/dagRuns/{run['dag_run_id']}/upstreamAssetEvents"
            ).json()["asset_events"]
        ]
        if any(event["committed_batch"] == batch for event in events):
            return sorted(events, key=lambda event: event["committed_batch"])
        assert time.monotonic() < deadline, (runs, events)
        time.sleep(0.5)


def check_tables(home: Home) -> None:
    lines, orders = count_landed(home)
    assert len(home.read_table("bronze/orders")) == lines
    silver = home.read_table("silver/orders")
    assert sorted(row["order_id"] for row in silver) == sorted(orders)
    gold = home.read_table("gold/sales")
    assert {row["order_id"] for row in gold} == set(orders)
    assert len(gold) == len(orders)
    assert all(row["country"] for row in gold)


def states(output: str) -> dict[str, str]:
    rows = [line.split("│") for line in output.splitlines() if line.startswith("│ orders_")]
    return {row[1].strip(): row[2].strip() for row in rows}


def test_the_medallion_runs_idles_and_goes_on(home, api):
    run = api.post("/dags/watcher/dagRuns", json={"logical_date": None}).json()
    assert await_state(api, run["dag_run_id"], {"deferred"}, 120) == "deferred"

    output = home.run("demo.run")
    assert states(output) == dict.fromkeys(
        ("orders_bronze", "orders_silver", "orders_gold"), "committed"
    )
    assert "3 runs, 2 of them started by asset events, 3 JVMs started" in output
    check_tables(home)
    assert await_state(api, run["dag_run_id"], {"success", "failed"}, 60) == "success"

    newest = max(
        int(file.name)
        for file in (home.folder / "var/state/orders_bronze/checkpoint/commits").iterdir()
        if file.name.isdigit()
    )
    events = await_commit_told(api, newest, 120)
    # Each batch is told of once, whatever the moments at which the triggerer looked.
    assert [event["batches_since"] for event in events] == [
        0,
        *(event["committed_batch"] + 1 for event in events[:-1]),
    ]
    assert not any(event["is_replaced"] for event in events)

    output = home.run("demo.run")
    assert set(states(output).values()) == {"idle"}
    assert "no JVMs started" in output

    before = len(home.read_table("bronze/orders"))
    home.run("demo.data")
    output = home.run("demo.run")
    assert set(states(output).values()) == {"committed"}
    lines, _ = count_landed(home)
    assert f"{lines - before:,}" in output
    check_tables(home)


def test_a_broken_spec_shows_in_airflow_and_the_others_still_load(home, api):
    import time

    bad = home.folder / "pipelines" / "bad.yaml"
    bad.write_text("name: bad\nsauce: {}\n")
    try:
        deadline = time.monotonic() + 120
        while not (errors := api.get("/importErrors").json()["import_errors"]):
            assert time.monotonic() < deadline
            time.sleep(1)
        [error] = errors
        assert error["filename"] == "spec_errors.py"
        assert "sauce (line 2): unknown key" in error["stack_trace"]
        dags = {dag["dag_id"]: dag for dag in api.get("/dags").json()["dags"]}
        assert {"orders_bronze", "orders_silver", "orders_gold"} <= set(dags)
        assert not any(dag["has_import_errors"] for dag in dags.values())
    finally:
        bad.unlink()
