"""Whether steps fit a checkpoint, held against what becomes of the query when it really goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate.core.compatibility.comparison import Comparison
from tidegate.core.compatibility.verdict import Verdict
from tidegate.spark.compatibility import check_state
from tidegate.spark.runner import run_pipeline

ROOT = Path(__file__).parents[2]
FILES = {
    "type": "files",
    "path": "landing",
    "format": "json",
    "schema": "id long, kind string, at timestamp",
    "max_files_per_trigger": 1,
    "provenance": False,
    "malformed": "fail",
    "watermark": {"column": "at", "delay": "1m"},
}
WINDOW = "window(at, '1 minute')"
SQL = {
    "plain": "SELECT id, kind FROM input",
    "other_columns": "SELECT id, upper(kind) AS kind FROM input",
    "sums": f"SELECT {WINDOW}.start AS id, kind, sum(id) AS n FROM input GROUP BY {WINDOW}, kind",
    "named_otherwise": (
        f"SELECT {WINDOW}.start AS id, kind, sum(id) AS m FROM input GROUP BY {WINDOW}, kind"
    ),
    "more_sums": (
        f"SELECT {WINDOW}.start AS id, kind, sum(id) AS n, max(id) AS m FROM input "
        f"GROUP BY {WINDOW}, kind"
    ),
    "other_keys": f"SELECT {WINDOW}.start AS id, id AS n FROM input GROUP BY {WINDOW}, id",
    "distinct": "SELECT DISTINCT id, kind, at FROM input",
}
STEPS = """
from typing import Iterator

import pandas as pd
from pyspark.sql.streaming import StatefulProcessor


def take(df, batch):
    df.collect()


def once(df, context):
    return df.dropDuplicates(["id", "at"])


def once_by_kind(df, context):
    return df.dropDuplicates(["kind", "at"])


class Count(StatefulProcessor):
    columns = "n long"

    def init(self, handle):
        self._count = handle.getValueState("count", self.columns)

    def handleInputRows(self, key, rows, timerValues):
        count = (self._count.get()[0] if self._count.exists() else 0) + sum(map(len, rows))
        self._count.update((count, "x")[: self.columns.count(",") + 1])
        yield pd.DataFrame({"kind": [key[0]], "n": [count]})

    def close(self):
        pass


class CountAndName(Count):
    columns = "n string, name string"


def _count(df, processor):
    return df.groupBy("kind").transformWithStateInPandas(
        processor, "kind string, n long", "Append", "none"
    )


def count(df, context):
    return _count(df, Count())


def count_and_name(df, context):
    return _count(df, CountAndName())
"""
COMPATIBLE = [
    ("plain", "other_columns"),
    ("sums", "named_otherwise"),
    ("sums", "sums"),
    ("once", "once"),
    ("count", "count"),
]
FRESH = [
    ("sums", "more_sums"),
    ("sums", "other_keys"),
    ("sums", "plain"),
    ("sums", "once"),
    ("plain", "sums"),
    ("plain", "distinct"),
    ("once", "once_by_kind"),
    ("once", "plain"),
    ("count", "count_and_name"),
    ("count", "once"),
]

QUICK = [
    ("plain", "other_columns"),
    ("sums", "named_otherwise"),
    ("count", "count"),
    ("sums", "more_sums"),
    ("plain", "sums"),
    ("once", "plain"),
    ("count", "count_and_name"),
]


@pytest.fixture
def build(settings, pipeline_of):
    settings.pipelines.mkdir()
    (settings.pipelines / "compatible_steps.py").write_text(STEPS)

    def make(steps, **parts):
        sql = SQL.get(steps)
        step = {"sql": sql} if sql else {"python": f"compatible_steps:{steps}"}
        sink = {"type": "python", "function": "compatible_steps:take"}
        return pipeline_of(FILES, transform=[step], sinks=[sink], **parts)

    return make


@pytest.fixture
def land(settings):
    folder = settings.locate("landing")
    folder.mkdir(parents=True)

    def write(number):
        row = {"id": number, "kind": "a", "at": f"2026-01-01T00:0{number}:00Z"}
        (folder / f"{number}.json").write_text(json.dumps(row))

    return write


def list_changes():
    """List all changes, of which a few of each kind are tried with every change of the project."""
    for pairs, fits in ((COMPATIBLE, True), (FRESH, False)):
        for pair in pairs:
            marks = () if pair in QUICK else (pytest.mark.slow,)
            yield pytest.param(*pair, fits, marks=marks, id="-".join(pair))


@pytest.mark.parametrize(("before", "now", "fits"), [*list_changes()])
def test_what_is_told_is_what_happens(runs, settings, build, land, before, now, fits):
    land(0)
    runs.run(build(before))
    changed = build(now)
    assert Comparison(changed, settings).needs_plan == (before != now)
    files = {
        file: file.read_bytes() for file in settings.state_of("p").rglob("*") if file.is_file()
    }

    found = check_state(changed, settings)

    assert [difference.verdict for difference in found] == ([] if fits else [Verdict.FRESH]), found[
        0
    ].message
    # Looking leaves no trace.
    after = {
        file: file.read_bytes() for file in settings.state_of("p").rglob("*") if file.is_file()
    }
    assert after == files
    land(1)
    plan = runs.plan(changed)
    if fits:
        run_pipeline(changed, settings, plan.run_id)
    else:
        with pytest.raises(Exception, match="STATE"):
            run_pipeline(changed, settings, plan.run_id)
        # A spec that was never taken is not what the next one is held against.
        assert Comparison(changed, settings).needs_plan


def test_a_table_that_would_not_take_the_rows_is_told(runs, settings, build, land, pipeline_of):
    land(0)
    runs.run(pipeline_of(FILES, transform=[{"sql": "SELECT id, kind FROM input"}]))
    renamed = pipeline_of(
        FILES, transform=[{"sql": "SELECT id, kind AS sort FROM input"}], schema_change="fail"
    )
    (found,) = check_state(renamed, settings)
    assert (found.code, found.verdict) == ("sink_refuses", Verdict.MIGRATE)


def test_steps_that_cannot_be_planned_are_not_judged(runs, settings, build, land):
    land(0)
    runs.run(build("plain"))
    for file in settings.locate("landing").iterdir():
        file.unlink()
    settings.locate("landing").rmdir()
    (found,) = check_state(build("sums"), settings)
    assert (found.code, found.verdict) == ("not_planned", Verdict.UNKNOWN)


def test_the_command_judges_all_specs_in_one_driver_and_prints_json_alone(
    runs, settings, build, land
):
    land(0)
    runs.run(build("sums"))
    for name, steps in (("p", "more_sums"), ("q", "sums")):
        spec = build(steps, name=name).model_dump(mode="json", exclude_none=True, by_alias=True)
        (settings.pipelines / f"{name}.yaml").write_text(json.dumps(spec))
    environment = os.environ | settings.to_environment()
    environment |= {"TIDEGATE_HOME": str(ROOT), "TIDEGATE_JARS": str(ROOT / "jars")}
    environment["TIDEGATE_STATE"] = "nowhere"
    command = [sys.executable, "-m", "tidegate.cli", "check", "--json", "--against", settings.state]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1, ended.stderr
    told = json.loads(ended.stdout)
    assert told["compatible"] is False
    assert {each["pipeline"]: each["verdict"] for each in told["pipelines"]} == {
        "p": "fresh",
        "q": "new",
    }
    (difference,) = told["pipelines"][0]["differences"]
    assert difference["code"] == "state_differs"
    assert "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE" in difference["message"]
