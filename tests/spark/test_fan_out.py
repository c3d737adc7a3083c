"""One stream to several sinks: each takes its own rows, made once, each once."""

import json

import pytest

from tidegate.core.errors import SinkError, TransformError
from tidegate.spark.runner import run_pipeline
from tidegate.spark.sinks.delta import DeltaAppend

FILES = {
    "type": "files",
    "path": "landing",
    "format": "json",
    "schema": "id long, kind string, amount double",
    "max_files_per_trigger": 1,
    "malformed": "drop",
    "provenance": False,
}
SINKS = [
    {"type": "delta", "name": "all", "table": "all"},
    {"type": "delta", "name": "big", "table": "big", "where": "amount >= 10", "columns": ["id"]},
    {
        "type": "delta",
        "name": "sure",
        "table": "sure",
        "where": "kind IS NOT NULL",
        "expect": [{"name": "known", "check": "kind IN ('a', 'b')"}],
    },
]


@pytest.fixture
def land(settings):
    """Land a file of rows (id, kind, amount)."""
    folder = settings.locate("landing")
    folder.mkdir(parents=True)

    def write(name, *rows):
        lines = (json.dumps(dict(zip(("id", "kind", "amount"), row, strict=True))) for row in rows)
        (folder / name).write_text("\n".join(lines))

    return write


ROWS = ((1, "a", 5.0), (2, "b", 20.0), (3, "z", 30.0), (4, None, 1.0))


def test_each_sink_takes_its_own_rows_and_columns(runs, pipeline_of, land, rows_of):
    land("a.json", *ROWS)
    run = runs.run(pipeline_of(FILES, sinks=SINKS, expect=[{"not_null": ["id"]}]))
    assert rows_of("all", "id") == [(1,), (2,), (3,), (4,)]
    assert rows_of("big") == [(2,), (3,)]
    assert rows_of("sure", "id") == [(1,), (2,)]
    (aside,) = rows_of("quarantine/p", "rule", "sink", "row")
    assert aside[:2] == ("known", "sure")
    assert json.loads(aside[2])["id"] == 3
    assert run.summary.failed == {"not_null_id": 0, "sure.known": 1}
    (batch,) = run.batches
    assert {name: sink.rows for name, sink in batch.sinks.items()} == {
        "all": 4,
        "big": 2,
        "sure": 2,
    }


def test_rows_are_made_once_however_many_sinks_there_are(runs, spark, pipeline_of, land, settings):
    land("a.json", *ROWS)
    settings.pipelines.mkdir(exist_ok=True)
    (settings.pipelines / "counted.py").write_text(
        "from pyspark.sql import functions as F\n\n"
        "def count(df, context):\n"
        "    seen = context.spark.sparkContext.accumulator(0)\n"
        "    count.seen = seen\n"
        "    def see(number):\n"
        "        seen.add(1)\n"
        "        return number\n"
        "    return df.withColumn('id', F.udf(see, 'long')('id'))\n"
    )
    runs.run(pipeline_of(FILES, sinks=SINKS, transform={"python": "counted:count"}))
    import counted

    assert counted.count.seen.value == len(ROWS)


@pytest.mark.parametrize("failing", ["all", "big", "sure", "quarantine"])
def test_a_replay_goes_on_at_the_sink_that_failed(
    runs, pipeline_of, land, rows_of, settings, monkeypatch, failing
):
    land("a.json", *ROWS)
    pipeline = pipeline_of(FILES, sinks=SINKS)
    plan = runs.plan(pipeline)
    write = DeltaAppend.write

    def fail_at_one(self, batch, batch_id, query_id):
        if self.name == failing:
            raise SinkError("The machine went away.")
        return write(self, batch, batch_id, query_id)

    with monkeypatch.context() as patch:
        patch.setattr(DeltaAppend, "write", fail_at_one)
        with pytest.raises(SinkError):
            run_pipeline(pipeline, settings, plan.run_id)
    run_pipeline(pipeline, settings, plan.run_id)
    assert runs.judge(pipeline, plan).verdict == "reached"
    tables = ("all", "big", "sure", "quarantine/p")
    assert [len(rows_of(table)) for table in tables] == [4, 2, 2, 1]
    (batch,) = runs.ledger(pipeline).read_run(plan.run_id).batches
    names = ("all", "big", "sure")
    expected = [(name != failing and names.index(name) < _rank(failing)) for name in names]
    assert [batch.sinks[name].is_replay for name in names] == expected


def _rank(failing):
    return {"all": 0, "big": 1, "sure": 2}.get(failing, 3)


def test_what_a_written_sink_left_out_is_put_aside_although_the_next_one_fails(
    runs, pipeline_of, land, rows_of, settings, monkeypatch
):
    """By the rules of the replay, which may be others, it would be nowhere."""
    land("a.json", *ROWS)
    sinks, write = [SINKS[2], SINKS[0]], DeltaAppend.write
    strict = pipeline_of(FILES, sinks=sinks, expect=[{"not_null": ["kind"]}])
    plan = runs.plan(strict)

    def fail_at_one(self, batch, batch_id, query_id):
        if self.name == "all":
            raise SinkError("The machine went away.")
        return write(self, batch, batch_id, query_id)

    with monkeypatch.context() as patch:
        patch.setattr(DeltaAppend, "write", fail_at_one)
        with pytest.raises(SinkError):
            run_pipeline(strict, settings, plan.run_id)
    lenient = pipeline_of(FILES, sinks=[{**sink, "expect": []} for sink in sinks])
    run_pipeline(lenient, settings, plan.run_id)
    assert runs.judge(lenient, plan).verdict == "reached"
    assert rows_of("sure", "id") == [(1,), (2,)]
    aside = [(rule, json.loads(row)["id"]) for rule, row in rows_of("quarantine/p", "rule", "row")]
    assert sorted(aside) == [("known", 3), ("not_null_kind", 4)]


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"on_fail": "fail"}, "a row fails known"),
        ({"fail_above": "10%"}, "known fails for 1 of 3 rows, above 10.00%"),
    ],
)
def test_no_sink_is_written_where_a_rule_of_a_later_one_stops_the_run(
    runs, pipeline_of, land, settings, rule, told
):
    land("a.json", *ROWS)
    (known,) = SINKS[2]["expect"]
    pipeline = pipeline_of(FILES, sinks=[SINKS[0], {**SINKS[2], "expect": [{**known, **rule}]}])
    plan = runs.plan(pipeline)
    with pytest.raises(Exception, match=told):
        run_pipeline(pipeline, settings, plan.run_id)
    assert not settings.locate("all").exists()


def test_a_condition_that_is_no_sql_is_told_before_anything_is_written(
    runs, pipeline_of, land, settings
):
    land("a.json", *ROWS)
    wrong = [SINKS[0], {**SINKS[1], "where": "nope = 1"}]
    with pytest.raises(TransformError, match=r"In the sink big, where: \[UNRESOLVED_COLUMN"):
        runs.run(pipeline_of(FILES, sinks=wrong))
    assert not settings.locate("all").exists()


def test_a_sink_that_is_added_gets_rows_from_then_on(runs, pipeline_of, land, rows_of):
    land("a.json", *ROWS)
    runs.run(pipeline_of(FILES, sinks=SINKS[:1]))
    land("b.json", (5, "a", 50.0))
    pipeline = pipeline_of(FILES, sinks=SINKS)
    assert "new sinks get rows from here on, none of earlier batches: big, sure" in (
        runs.plan(pipeline).warning
    )
    runs.run(pipeline)
    assert rows_of("big") == [(5,)]
    assert len(rows_of("all")) == 5
    assert runs.plan(pipeline).warning is None


def test_a_folder_among_the_sinks_leaves_the_others_the_same_rows(
    runs, spark, pipeline_of, land, rows_of, settings
):
    land("a.json", *ROWS)
    sinks = [
        {"type": "files", "name": "folder", "path": "folder", "format": "parquet"},
        {"type": "delta", "name": "table", "table": "table"},
    ]
    step = {"sql": "SELECT id, uuid() AS u FROM input"}
    runs.run(pipeline_of(FILES, transform=step, sinks=sinks))
    written = spark.read.parquet(settings.locate_url("folder")).select("id", "u").collect()
    assert sorted(map(tuple, written)) == rows_of("table", "id", "u")
