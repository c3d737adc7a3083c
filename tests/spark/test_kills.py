"""Every stateful operator and every sink outlives drivers that are killed in the middle of a batch.

One driver runs all pipelines at once. In their second batch it stands still before anything is written,
and is killed; the next one, once all is written and nothing is committed. What is landed meanwhile is read
by a third, and the result must be just what a batch query makes of all files.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path

import pytest

from tests.spark.kill_cases import (
    AFTER_KILLS,
    BEFORE_KILLS,
    CASES,
    CLICK,
    EVENT,
    FAN_OUT,
    SCHEMA,
    SINKS,
    STATEFUL,
)
from tests.spark.kill_steps import HALT_AT, HALTED_BATCH, MARKS, PUSHED
from tidegate.core.checkpoint.progress import State, read_progress
from tidegate.core.condition import RunReached, Verdict, judge
from tidegate.core.ledger import Decision, Ledger
from tidegate.core.plan import plan_run
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import load_pipeline
from tidegate.core.submission import prepare_submission
from tidegate.spark.runner import run_pipeline

pytestmark = pytest.mark.timeout(600)

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RUN = "killed"
HALT_TIMEOUT_SECONDS = 240
LOOK_SECONDS = 0.05


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """One deployment for all cases."""
    home = tmp_path_factory.mktemp("kills")
    return Settings(
        home=ROOT,
        pipelines=home / "pipelines",
        data=str(home / "data"),
        state=str(home / "state"),
        jars=ROOT / "jars",
    )


QUICK = frozenset({"drop_duplicates", "inner_join", "delta_scd2", "jdbc_upsert", "fan_out"})
"""One of each kind, at every change."""


def mark_slow(names):
    """Mark the cases that are left to the slow tests."""
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in names]


def list_chosen(request):
    """List the cases of the tests that run: those of others need not be killed."""
    mine = (item for item in request.session.items if item.path == Path(__file__))
    return list(dict.fromkeys(item.callspec.params["name"] for item in mine))


@pytest.fixture(scope="module")
def pipelines(request, settings, postgres):
    """The pipelines of the tests that were chosen, by name, and what they need."""
    settings.pipelines.mkdir()
    shutil.copy(HERE / "kill_steps.py", settings.pipelines)
    postgres.run(f"CREATE SCHEMA {SCHEMA}")
    names = list_chosen(request)
    for name in names:
        case = CASES[name]
        (settings.pipelines / f"{name}.yaml").write_text(json.dumps(case.to_spec(name)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEGATE_CONN_WAREHOUSE", json.dumps(postgres.options))
        patch.setenv("KILLS_SPARK", settings.locate_url("spark"))
        patch.setenv(PUSHED, str(settings.locate("pushed.jsonl")))
        yield {name: load_pipeline(settings.pipelines, name).require() for name in names}
    postgres.run(f"DROP SCHEMA {SCHEMA} CASCADE")


def land(settings, files, ages):
    for name, rows in files.items():
        file = Path(settings.data) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(map(json.dumps, rows)))
        # Spark reads older files first, and of the same millisecond whichever it likes.
        os.utime(file, times=(next(ages),) * 2)


def kill_at(moment, settings, pipelines):
    """Start a driver, and kill it when all its pipelines stand still at a moment."""
    marks = settings.pipelines / moment
    marks.mkdir()
    submission = prepare_submission(next(iter(pipelines.values())), settings, RUN)
    quiet = {"spark.ui.enabled": "false", "spark.driver.memory": "2g"}
    conf = (f"--conf={key}={value}" for key, value in (submission.conf | quiet).items())
    spark_submit = Path(sys.executable).with_name("spark-submit")
    command = [spark_submit, "--master=local[2]", *conf, HERE / "kill_driver.py", marks, RUN]
    told = settings.pipelines / f"{moment}.log"
    with told.open("wb") as log:
        driver = subprocess.Popen(
            [*command, *pipelines],
            env=os.environ | submission.environment | {HALT_AT: moment, MARKS: str(marks)},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + HALT_TIMEOUT_SECONDS
        while going := set(pipelines) - {mark.name for mark in marks.iterdir()}:
            assert driver.poll() is None, told.read_text()[-5000:]
            assert time.monotonic() < deadline, f"{going} go on: {told.read_text()[-5000:]}"
            time.sleep(LOOK_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    return {
        name: (read_progress(settings.checkpoint_of(name)), (marks / name).read_text())
        for name in pipelines
    }


@pytest.fixture(scope="module")
def killed(settings, pipelines):
    """Kill two drivers of all pipelines; how far each had got by then, and why it had ended."""
    ages = count(int(time.time()) - 1000)
    land(settings, BEFORE_KILLS, ages)
    for pipeline in pipelines.values():
        assert plan_run(pipeline, settings, RUN).decision is Decision.RUN
    progress = {moment: kill_at(moment, settings, pipelines) for moment in ("before", "after")}
    land(settings, AFTER_KILLS, ages)
    return progress


@pytest.fixture
def finish(spark, killed, pipelines, settings):
    """Let a pipeline go on to its end, and return what became of its batches."""

    def retry(name):
        pipeline, checkpoint = pipelines[name], settings.checkpoint_of(name)
        for progress, error in (killed["before"][name], killed["after"][name]):
            assert not error, error
            reached = (progress.state, progress.committed_batch, progress.planned_batch)
            assert reached == (State.PENDING, HALTED_BATCH - 1, HALTED_BATCH)
        run_pipeline(pipeline, settings, RUN)
        judgement = judge(checkpoint, [RunReached(RUN)])
        assert judgement.verdict is Verdict.REACHED, judgement.reason
        assert plan_run(pipeline, settings, "next").decision is Decision.IDLE
        batches = list(Ledger.beside(settings.state_of(name)).read_batches(after=None))
        committed = judgement.progress.committed_batch
        assert [batch.batch_id for batch in batches] == list(range(committed + 1))
        assert committed > HALTED_BATCH
        return batches

    return retry


@pytest.fixture(scope="module")
def lake(spark, settings):
    """A session that knows all landed files by the names that steps have for them."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    events = session.read.schema(EVENT).json(settings.locate_url("events"))
    events.createOrReplaceTempView("input")
    events.createOrReplaceTempView("events")
    clicks = session.read.schema(CLICK).json(settings.locate_url("clicks"))
    clicks.createOrReplaceTempView("clicks")
    return session


@pytest.fixture
def compute(lake, killed):
    """Compute a result in batch: its columns and its rows."""

    def run(query):
        result = lake.sql(query).where("user <> 'flush'")
        return result.columns, order(result.collect())

    return run


@pytest.fixture
def read(lake, settings, postgres):
    """Read the rows of a sink, but for what made the others final."""

    def read_table(sink, columns):
        if sink.type == "jdbc":
            listed = ", ".join(f'"{column}"' for column in columns)
            return order(
                postgres.run(f"SELECT {listed} FROM {sink.table} WHERE \"user\" <> 'flush'")
            )
        if sink.type == "delta" and sink.route_by:
            tables = sorted(settings.locate(sink.table).iterdir())
            parts = [
                lake.read.format("delta")
                .load(str(table))
                .selectExpr("*", f"'{table.name}' AS kind")
                for table in tables
            ]
            rows = parts[0]
            for part in parts[1:]:
                rows = rows.unionByName(part)
        else:
            location = sink.table if sink.type == "delta" else sink.path
            file_format = "delta" if sink.type == "delta" else sink.format
            rows = lake.read.format(file_format).load(settings.locate_url(location))
        return order(rows.where("user <> 'flush'").select(*columns).collect())

    return read_table


def order(rows):
    plain = (tuple(map(forget_zone, row)) for row in rows)
    return sorted(plain, key=lambda row: [(value is not None, value) for value in row])


def forget_zone(value):
    """Spell a moment as Spark does."""
    is_zoned = isinstance(value, datetime) and value.tzinfo
    return value.astimezone().replace(tzinfo=None) if is_zoned else value


def find_sink(pipeline, name="main"):
    return next(sink for sink in pipeline.sinks if sink.name == name)


@pytest.mark.parametrize("name", mark_slow(STATEFUL))
def test_what_is_remembered_is_neither_lost_nor_counted_twice(
    finish, compute, read, pipelines, name
):
    batches = finish(name)
    columns, expected = compute(STATEFUL[name].result)
    assert read(find_sink(pipelines[name]), columns) == expected
    assert batches[HALTED_BATCH].sinks["main"].is_replay
    assert len(expected) > 3


@pytest.mark.parametrize("name", mark_slow(SINKS))
def test_a_sink_has_each_row_once(finish, compute, read, pipelines, name):
    batches = finish(name)
    columns, expected = compute(SINKS[name].result)
    assert read(find_sink(pipelines[name]), columns) == expected
    assert batches[HALTED_BATCH].sinks["main"].is_replay


@pytest.mark.parametrize("name", ["fan_out"])
def test_of_several_sinks_each_has_each_row_once(
    finish, compute, read, pipelines, lake, settings, name
):
    batches = finish(name)
    replayed = {name: sink.is_replay for name, sink in batches[HALTED_BATCH].sinks.items()}
    assert replayed | {"all": True, "large": True, "users": True} == replayed
    columns, rows = compute(FAN_OUT.result)
    assert read(find_sink(pipelines[name], "all"), columns) == rows
    columns, rows = compute(f"{FAN_OUT.result} AND amount >= 5")
    assert read(find_sink(pipelines[name], "large"), columns) == rows
    columns, rows = compute("SELECT id, user FROM input WHERE amount > 0")
    assert read(find_sink(pipelines[name], "users"), columns) == rows
    aside = lake.read.format("delta").load(settings.locate_url(f"quarantine/{name}")).collect()
    _, rows = compute("SELECT id, user FROM input WHERE amount = 0")
    assert sorted(json.loads(row["row"])["id"] for row in aside) == [number for number, _ in rows]
    assert {(row["rule"], row["sink"]) for row in aside} == {("positive", None)}
    assert sum(batch.quarantined for batch in batches) == len(rows)


def list_ids(file):
    rows = (BEFORE_KILLS | AFTER_KILLS)[file]
    return [row["id"] for row in rows]


@pytest.mark.parametrize("name", mark_slow(["python"]))
def test_a_function_that_returned_is_not_called_again(finish, settings, name):
    batches = finish(name)
    assert batches[HALTED_BATCH].sinks["main"].is_replay
    calls = [json.loads(line) for line in settings.locate("pushed.jsonl").read_text().splitlines()]
    assert calls == [
        {"ids": list_ids("events/a.json"), "batch": 0, "is_replay": False},
        {"ids": list_ids("events/b.json"), "batch": 1, "is_replay": False},
        {"ids": list_ids("events/c.json"), "batch": 2, "is_replay": False},
    ]


@pytest.mark.parametrize("name", mark_slow(["spark"]))
def test_a_format_of_spark_s_that_was_done_has_each_row_once(finish, lake, settings, name):
    batches = finish(name)
    assert batches[HALTED_BATCH].sinks["main"].is_replay
    found = Counter(row.id for row in lake.read.parquet(settings.locate_url("spark")).collect())
    assert found == Counter(number for file in "abc" for number in list_ids(f"events/{file}.json"))
