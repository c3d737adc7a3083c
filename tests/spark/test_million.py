"""A million records by drivers that are killed at the worst moments: each is there once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from functools import reduce
from hashlib import blake2b
from operator import xor
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tidegate.core.condition import NothingPending, Verdict, judge
from tidegate.core.deltatable import DeltaRows
from tidegate.core.ledger import Decision, Ledger
from tidegate.core.plan import plan_run
from tidegate.core.spec.pipeline import Pipeline

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
RECORDS = 1_000_000
PARTITIONS = 4
LOOK_SECONDS = 0.005  # without a pause it would take a core from the driver
COLUMNS = ("id", "shop", "amount", "_partition", "_offset")


def order(number):
    return {"id": number, "shop": f"shop {number % 97}", "amount": number * 7919 % 100_003 / 100}


def expect_rows():
    """Say what the table must hold: records go round the partitions, in order within each."""
    for number in range(RECORDS):
        yield (*order(number).values(), number % PARTITIONS, number // PARTITIONS)


def fingerprint(rows):
    """Sum up rows in any order: how many they are, and the sum and xor of their hashes."""
    hashes = [
        int.from_bytes(blake2b(repr(row).encode(), digest_size=8).digest(), "big") for row in rows
    ]
    return len(hashes), sum(hashes), reduce(xor, hashes)


@pytest.fixture
def topic(kafka_default):
    topic = kafka_default.create(partitions=PARTITIONS)
    options = {"enable.idempotence": True, "linger.ms": 50, "queue.buffering.max.messages": RECORDS}
    producer = Producer(kafka_default.options | options)
    for number in range(RECORDS):
        producer.produce(topic, json.dumps(order(number)), partition=number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0
    assert set(kafka_default.read_ends(topic).values()) == {RECORDS // PARTITIONS}
    return topic


@pytest.fixture
def pipeline(topic, settings):
    spec = {
        "name": "p",
        "source": {
            "type": "kafka",
            "topics": [topic],
            "max_offsets_per_trigger": 100_000,
            "value": {"format": "json", "schema": "id long, shop string, amount double"},
        },
        "sinks": [{"type": "delta", "table": "out"}],
    }
    settings.pipelines.mkdir(parents=True)
    (settings.pipelines / "p.yaml").write_text(json.dumps(spec))
    return Pipeline.model_validate(spec)


def count(folder, pattern):
    return sum(1 for _ in folder.glob(pattern))


class Drivers:
    """Starts drivers, one after another, and kills them."""

    def __init__(self, settings):
        self._settings = settings
        self._command = [str(Path(sys.executable).with_name("tidegate")), "run", "p"]
        self._environment = os.environ | settings.to_environment()
        self._environment |= {"TIDEGATE_HOME": str(ROOT), "TIDEGATE_JARS": str(ROOT / "jars")}
        self._environment["TIDEGATE_MASTER"] = "local[2]"

    def finish(self):
        """Run to the end."""
        subprocess.run(self._command, env=self._environment, check=True)

    def kill_when(self, is_moment):
        """Run until the moment has come after a commit of this run, and kill it right then."""
        before = self.look()["commits"]
        driver = subprocess.Popen(self._command, env=self._environment, start_new_session=True)
        try:
            while True:
                assert driver.poll() is None, "it ended before its moment came"
                if not self._is_after(before, is_moment):
                    time.sleep(LOOK_SECONDS)
                    continue
                # Stand still for a second look: the moment may have passed meanwhile.
                os.killpg(driver.pid, signal.SIGSTOP)
                if self._is_after(before, is_moment):
                    return self.look()
                os.killpg(driver.pid, signal.SIGCONT)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()

    def look(self):
        """Count what is planned, what the table has and what is committed."""
        state, data = Path(self._settings.state), Path(self._settings.data)
        return {
            "commits": count(state / "p/checkpoint/commits", "[0-9]*"),
            "table": count(data / "out/_delta_log", "[0-9]*.json"),
            "offsets": count(state / "p/checkpoint/offsets", "[0-9]*"),
        }

    def _is_after(self, before, is_moment):
        seen = self.look()
        return seen["commits"] > before and is_moment(**seen)


def is_pending(commits, table, offsets):
    return commits == table < offsets


def is_written(commits, table, offsets):
    return commits < table == offsets


def is_committed(commits, table, offsets):
    return commits == table == offsets


def test_a_million_records_outlive_three_killed_drivers(pipeline, settings):
    drivers = Drivers(settings)
    committed = [
        drivers.kill_when(moment)["commits"] for moment in (is_pending, is_written, is_committed)
    ]
    assert 0 < committed[0] < committed[1] < committed[2] < RECORDS / 100_000
    drivers.finish()

    table = DeltaRows.open(settings.locate("out"))
    rows = table.select(", ".join(COLUMNS))
    ids = Counter(rows["id"].to_pylist())
    assert (rows.num_rows, len(ids), max(ids.values())) == (RECORDS, RECORDS, 1)
    found = zip(*(rows[column].to_pylist() for column in COLUMNS), strict=True)
    assert fingerprint(found) == fingerprint(expect_rows())

    batches = list(Ledger.beside(settings.state_of("p")).read_batches(after=None))
    assert [batch.batch_id for batch in batches] == list(range(len(batches)))
    assert sum(batch.sinks["main"].rows for batch in batches) == RECORDS
    assert not settings.locate("quarantine/p").exists()
    assert judge(settings.checkpoint_of("p"), [NothingPending()]).verdict is Verdict.REACHED
    assert plan_run(pipeline, settings, "next").decision is Decision.IDLE
