"""Real drivers on one checkpoint: two at once, one that is stopped, and one killed again and again."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tidegate.core.condition import RunReached, Verdict, judge
from tidegate.core.deltatable import DeltaRows
from tidegate.core.lease import LeaseFolder
from tidegate.core.ledger import Ledger, Outcome
from tidegate.core.plan import plan_run
from tidegate.core.spec.loader import load_pipeline
from tidegate.core.submission import prepare_submission, record_silent_end

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).resolve().parents[2]
RUN = "run"
LEASE_SECONDS = 6
PATIENCE_SECONDS = 180
FILES = 6
STEPS = '''
import os, time
from pathlib import Path

def wait(df, batch):
    """Stand still, as a sink, until told to go on."""
    folder = Path(os.environ["MARKS"])
    (folder / f"entered-{os.environ['DRIVER']}-{batch.id}").touch()
    end = time.monotonic() + 180
    while not (folder / "go").exists():
        assert time.monotonic() < end, "nobody let the driver go on"
        time.sleep(0.02)
'''


@pytest.fixture
def home(settings):
    """A pipeline of files into a table, each batch of which waits for a mark."""
    settings = replace(settings, home=ROOT, jars=ROOT / "jars", lease_seconds=LEASE_SECONDS)
    settings.pipelines.mkdir()
    landing = settings.locate("landing")
    landing.mkdir(parents=True)
    for number in range(FILES):
        (landing / f"{number}.json").write_text(json.dumps({"id": number}))
    spec = {
        "name": "p",
        "source": {
            "type": "files",
            "path": "landing",
            "format": "json",
            "schema": "id long",
            "max_files_per_trigger": 1,
            "provenance": False,
        },
        "sinks": [
            {"type": "python", "function": "steps:wait", "name": "wait"},
            {"type": "delta", "table": "out"},
        ],
    }
    (settings.pipelines / "p.yaml").write_text(json.dumps(spec))
    (settings.pipelines / "steps.py").write_text(STEPS)
    (settings.pipelines / "marks").mkdir()
    return settings


@pytest.fixture
def pipeline(home):
    return load_pipeline(home.pipelines, "p").require()


class Driver:
    """A driver in a session of its own, as spark-submit starts it."""

    def __init__(self, home, pipeline, number):
        self.number = number
        self.marks = home.pipelines / "marks"
        self.told = home.pipelines / f"driver-{number}.log"
        submission = prepare_submission(pipeline, home, RUN, str(number))
        conf = [f"--conf={key}={value}" for key, value in submission.conf.items()]
        spark_submit = Path(sys.executable).with_name("spark-submit")
        command = [spark_submit, "--master=local[1]", *conf, "--conf=spark.ui.enabled=false"]
        marks = {"MARKS": str(self.marks), "DRIVER": str(number), "SPARK_LOCAL_IP": "127.0.0.1"}
        with self.told.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, submission.application, *submission.arguments],
                env=os.environ | submission.environment | marks,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def await_batch(self, batch):
        self.wait_for((self.marks / f"entered-{self.number}-{batch}").exists)

    def wait_for(self, condition):
        end = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert self.process.poll() is None, self.told.read_text()[-3000:]
            assert time.monotonic() < end, self.told.read_text()[-3000:]
            time.sleep(0.01)

    def signal(self, number):
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def end(self):
        return self.process.wait(PATIENCE_SECONDS), self.told.read_text()


@pytest.fixture
def start(home, pipeline):
    drivers = []

    def start():
        drivers.append(Driver(home, pipeline, len(drivers) + 1))
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.signal(signal.SIGKILL)
        driver.process.wait()


def go_on(home):
    (home.pipelines / "marks" / "go").touch()


def read_ids(home):
    rows = DeltaRows.open(home.locate("out"))
    return sorted(rows.select("id").column("id").to_pylist()) if rows else []


def judge_run(home):
    return judge(home.checkpoint_of("p"), [RunReached(RUN)])


def test_a_second_driver_is_refused_and_the_first_goes_on(home, pipeline, start):
    plan_run(pipeline, home, RUN)
    first = start()
    first.await_batch(0)
    second = start()
    code, told = second.end()
    assert code == 1
    assert f"is held by run {RUN}, try 1 (process " in told.splitlines()[-1]
    record_silent_end(home, "p", RUN, "2")
    assert Ledger.beside(home.state_of("p")).read_attempt(RUN).outcome is Outcome.RUNNING
    assert judge_run(home).verdict is Verdict.WAITING
    go_on(home)
    assert first.end()[0] == 0
    assert judge_run(home).verdict is Verdict.REACHED
    assert read_ids(home) == list(range(FILES))


def test_a_driver_that_was_stopped_is_fenced_when_it_goes_on(home, pipeline, start):
    plan_run(pipeline, home, RUN)
    first = start()
    first.await_batch(0)
    first.signal(signal.SIGSTOP)
    go_on(home)
    code, told = start().end()
    assert code == 0, told[-3000:]
    assert f"took over the lease of run {RUN}, try 1" in told
    assert judge_run(home).verdict is Verdict.REACHED
    first.signal(signal.SIGCONT)
    code, told = first.end()
    assert code == 1
    assert f"was taken over by run {RUN}, try 2" in told.splitlines()[-1]
    assert read_ids(home) == list(range(FILES))
    assert judge_run(home).verdict is Verdict.REACHED
    assert LeaseFolder.beside(home.checkpoint_of("p")).find_held() is None


def test_a_sensor_that_looks_all_the_time_is_never_early_and_right_in_the_end(
    home, pipeline, start
):
    plan_run(pipeline, home, RUN)
    go_on(home)
    done, seen = threading.Event(), []

    def look():
        while not done.wait(0.01):
            verdict = judge_run(home)
            # What the table holds afterwards is no less than what it held when it was judged.
            seen.append((verdict.verdict, verdict.reason, len(read_ids(home))))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        checkpoint = home.checkpoint_of("p")
        for batch in (0, 2, 3):
            driver = start()
            driver.wait_for(lambda batch=batch: (checkpoint / "commits" / str(batch)).exists())
            driver.signal(signal.SIGKILL)
            driver.process.wait()
        assert start().end()[0] == 0
    finally:
        done.set()
        watcher.join()
    assert len(seen) > 100
    assert {reason for verdict, reason, _ in seen if verdict is Verdict.FAILED} == set()
    early = [found for verdict, _, found in seen if verdict is Verdict.REACHED and found < FILES]
    assert early == []
    assert judge_run(home).verdict is Verdict.REACHED
    assert read_ids(home) == list(range(FILES))
