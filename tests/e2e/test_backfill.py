"""Damaged tables are healed from Airflow while a producer, live runs and a killer go on.

One pipeline for each kind of source. What the tables have in the end is held against what was produced,
row by row, by nothing but Python.
"""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from deltalake import DeltaTable

from tests.e2e.home import Home
from tests.e2e.waiting import await_end, run_dag, wait_for
from tests.kafka_cluster import Cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.timeout(2400),
]

TOPIC = "events"
NAMES = ("events", "landed", "refined")
DAMAGED = 30
"""How many rows of each table there are at least before they are damaged."""
TABLE = {"max_files_per_trigger": 50, "type": "delta"}
SPECS = {
    "events": {
        "source": {
            "type": "kafka",
            "topics": [TOPIC],
            "value": {"format": "json", "schema": "id long, n long"},
            "max_offsets_per_trigger": 100,
        },
        "transform": {"sql": "SELECT *, n * 2 AS twice FROM input"},
    },
    "landed": {
        "source": {
            "type": "files",
            "path": "landing",
            "format": "json",
            "schema": "id long, n long",
            "max_files_per_trigger": 10,
        },
        "transform": {"sql": "SELECT *, n * 2 AS twice FROM input"},
        "expect": [{"name": "odd", "check": "id % 10 != 7", "on_fail": "quarantine"}],
    },
    "refined": {
        # Landed is healed too, by a version that changes rows: those of its own are swapped here.
        "source": TABLE | {"table": "landed", "provenance": True, "skip_change_commits": True},
        "transform": {"sql": "SELECT id, n, twice + 1 AS more, _file FROM input"},
    },
}


class World:
    """A producer that never stops, and live runs one after the other."""

    def __init__(self, home: Home, kafka: Cluster, api: httpx.Client) -> None:
        self.home = home
        self.kafka = kafka
        self.api = api
        self.produced = 0
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def produce(self) -> None:
        """Bring ten more rows to the topic and to the landing zone."""
        rows = [{"id": self.produced + n, "n": (self.produced + n) * 3} for n in range(10)]
        self.kafka.produce(TOPIC, rows)
        folder = self.home.data / "landing"
        folder.mkdir(parents=True, exist_ok=True)
        hidden = folder / f".{self.produced}.json"
        hidden.write_text("\n".join(map(json.dumps, rows)))
        hidden.rename(folder / f"it's {self.produced}.json")
        self.produced += 10

    def run(self, *names: str) -> None:
        """Run pipelines once, one after the other."""
        for name in names:
            run_dag(self.api, name)

    def start(self) -> None:
        """Produce and run until it is stopped."""
        self._threads = [
            threading.Thread(target=self._repeat, args=(self.produce, 1.0)),
            threading.Thread(target=self._repeat, args=(lambda: self.run(*NAMES), 0.1)),
        ]
        for thread in self._threads:
            thread.start()

    def _repeat(self, act: Callable[[], None], pause_seconds: float) -> None:
        while not self._over.wait(pause_seconds):
            act()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def world(tmp_path, kafka) -> Iterator[World]:
    home = Home(tmp_path)
    (tmp_path / "specs").mkdir()
    for name, spec in SPECS.items():
        sinks = [{"type": "delta", "table": name}]
        text = json.dumps({"name": name, "retries": 3, "retry_delay": "1s", "sinks": sinks} | spec)
        (tmp_path / "specs" / f"{name}.yaml").write_text(text)
    home.environment |= {
        "TIDEGATE_PIPELINES": "specs",
        "TIDEGATE_CONN_KAFKA_DEFAULT": json.dumps(kafka.options),
        "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps({"conn_type": "kafka", "extra": kafka.options}),
    }
    kafka.create(TOPIC, partitions=1)
    try:
        home.run("demo.up")
        url = json.loads((tmp_path / "var/airflow-specs/stack.json").read_text())["url"]
        with httpx.Client(base_url=f"{url}/api/v2", timeout=60) as api:
            wait_for(lambda: {*NAMES, "backfill"} <= list_dags(api), 180)
            yield World(home, kafka, api)
    finally:
        home.run("demo.down")


def list_dags(api: httpx.Client) -> set[str]:
    return {dag["dag_id"] for dag in api.get("/dags").json()["dags"]}


def damage(home: Home, name: str) -> None:
    """Delete some rows and change others, as a bad day does."""
    table = DeltaTable(str(home.data / name))
    table.delete(f"id < {DAMAGED} AND id % 3 = 0")
    table.update(predicate=f"id < {DAMAGED} AND id % 3 = 1", updates={"n": "-1"})


def kill_one_slice(folder: Path) -> int:
    """Kill a driver in the middle of a slice, with its JVM; say which slice it was."""

    def find_running() -> tuple[int, int] | None:
        for lease in sorted(folder.glob("backfill__*/lease/*/1.json")):
            if not lease.parent.name.isdigit():
                continue
            record = json.loads(lease.read_text())
            done = folder / lease.parts[-4] / "slices" / f"{lease.parent.name}.json"
            if record["released_at"] is None and not done.exists():
                return int(lease.parent.name), record["holder"]["pid"]
        return None

    number, pid = wait_for(find_running, 300)
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(parent, signal.SIGKILL)  # spark-submit's JVM, of which the driver's Python is a child
    os.kill(pid, signal.SIGKILL)
    return number


def test_damaged_tables_are_healed_while_all_goes_on(world):
    home, api = world.home, world.api
    for _ in range(2):
        world.produce()
        world.produce()
        world.run(*NAMES)
    ranges = {
        "events": {"offsets": {TOPIC: {"0": [0, DAMAGED]}}},
        "landed": {"paths": [f"it's {number}.json" for number in range(0, DAMAGED, 10)]},
        "refined": {"first_version": 0, "last_version": 1},
    }
    for name in NAMES:
        damage(home, name)
    world.start()
    try:
        begun = {}
        for name, asked in ranges.items():
            conf = {"pipeline": name, "mode": "replace", "slices": 3, "parallelism": 2} | asked
            answer = api.post(
                "/dags/backfill/dagRuns",
                json={"logical_date": None, "conf": conf | {"dry_run": False}},
            )
            assert answer.is_success, answer.text
            begun[name] = answer.json()["dag_run_id"]
        killed = {
            name: kill_one_slice(home.folder / "var/state" / name / "backfills") for name in begun
        }
        for name, run_id in begun.items():
            state = await_end(api, "backfill", run_id, 1200)
            tasks = api.get(f"/dags/backfill/dagRuns/{run_id}/taskInstances").json()
            told = [
                (task["task_id"], task["map_index"], task["state"], task["try_number"])
                for task in tasks["task_instances"]
            ]
            assert state == "success", (name, killed[name], told)
            tries = {
                task["map_index"]: task["try_number"]
                for task in tasks["task_instances"]
                if task["task_id"] == "slice"
            }
            assert tries[killed[name]] > 1, told
    finally:
        world.stop()
    world.run(*NAMES)
    world.run("refined")
    check_tables(world)


def check_tables(world: World) -> None:
    """Hold every table against a recomputation from what was produced."""
    home = world.home
    ids = range(world.produced)
    kept = [number for number in ids if number % 10 != 7]
    assert read_rows(home, "events", "twice") == [(n, n * 3, n * 6) for n in ids]
    aside = [number for number in ids if number % 10 == 7]
    found = home.read_table("quarantine/landed")
    assert sorted(json.loads(row["row"])["id"] for row in found) == aside
    assert read_rows(home, "landed", "twice") == [(n, n * 3, n * 6) for n in kept]
    assert read_rows(home, "refined", "more") == [(n, n * 3, n * 6 + 1) for n in kept]


def read_rows(home: Home, name: str, last: str) -> list[tuple[int, int, int]]:
    return sorted((row["id"], row["n"], row[last]) for row in home.read_table(name))
