"""A table that was damaged is healed by a backfill, row by row, while live runs go on."""

import json

import pytest

from tidegate.core.backfill.book import Backfills
from tidegate.core.backfill.report import render
from tidegate.core.backfill.request import parse_request
from tidegate.core.backfill.survey import Survey
from tidegate.core.backfill.verification import SinkAudit, Verification, verify
from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.errors import BackfillError
from tidegate.core.spec.loader import LoadedSpec
from tidegate.spark import backfill as module
from tidegate.spark.backfill import run_backfill

FILES = {
    "type": "files",
    "path": "landing",
    "format": "json",
    "schema": "id long, n long",
    "max_files_per_trigger": 2,
}
RULES = [{"name": "small", "check": "n < 90", "on_fail": "quarantine"}]


@pytest.fixture
def land(settings):
    folder = settings.locate("landing")
    folder.mkdir(parents=True)

    def write(*numbers):
        for number in numbers:
            rows = ({"id": number * 10 + n, "n": number * 10 + n} for n in range(10))
            (folder / f"it's {number}.json").write_text("\n".join(map(json.dumps, rows)))

    return write


@pytest.fixture
def begin(settings, tmp_path):
    """Begin a backfill as the command does."""

    def begin(pipeline, **asked):
        specs = [LoadedSpec(tmp_path / f"{pipeline.name}.yaml", "", pipeline)]
        request, _ = parse_request({"pipeline": pipeline.name} | asked, specs)
        found = Survey(request, pipeline, settings).find()
        return Backfills(pipeline, settings).begin(request, found)

    return begin


@pytest.fixture
def damage(spark, settings):
    def damage(table="out"):
        name = f"delta.`{settings.locate_url(table)}`"
        spark.sql(f"DELETE FROM {name} WHERE id % 3 = 0")
        spark.sql(f"UPDATE {name} SET n = -1 WHERE id % 3 = 1")
        spark.sql(f"INSERT INTO {name} SELECT * FROM {name} WHERE id % 7 = 0")

    return damage


def test_a_damaged_range_is_swapped_while_live_runs_go_on(
    runs, pipeline_of, settings, land, begin, damage, rows_of
):
    pipeline = pipeline_of(FILES, transform={"sql": "SELECT *, n * 2 AS twice FROM input"})
    land(0, 1, 2, 3)
    runs.run(pipeline)
    expected = rows_of("out", "id", "n", "twice")
    damage()
    assert rows_of("out", "id", "n", "twice") != expected
    before = read_progress(settings.checkpoint_of("p"))

    backfill = begin(pipeline, mode="replace", glob="*.json", slices=3)
    land(4)
    runs.run(pipeline)  # a live run between the plan and the backfill
    run_backfill(pipeline, settings, backfill.id)

    assert rows_of("out", "id", "n", "twice") == expected + [(n, n, n * 2) for n in range(40, 50)]
    book = Backfills(pipeline, settings)
    done = book.read_done(backfill.id)
    assert [(one.rows_read, one.written) for one in done.values()] == [
        (10, {"main": 10}),
        (10, {"main": 10}),
        (20, {"main": 20}),
    ]
    assert verify(book, backfill) == Verification(
        *(backfill.id, None, 3, 3, round(sum(one.seconds for one in done.values()), 3), {}),
        (SinkAudit("main", 40, 0, 0, 0, 0, 40, 40, held=40),),
        problems=(),
    )
    assert read_progress(settings.checkpoint_of("p")).query_id == before.query_id
    land(5)
    run = runs.run(pipeline)
    assert run.summary.output_rows == 10
    assert len(rows_of("out", "id")) == 60


def test_a_slice_that_failed_stops_no_other_and_is_all_that_is_run_again(
    runs, pipeline_of, settings, land, begin, damage, rows_of, monkeypatch
):
    pipeline = pipeline_of(FILES, expect=RULES)
    land(*range(10))
    runs.run(pipeline)
    expected = rows_of("out", "id", "n")
    damage()
    backfill = begin(pipeline, mode="replace", glob="*.json", slices=5)
    read, parts = module.read_range, []

    def read_or_fail(session, pipeline, settings, part):
        parts.append(part)
        if part == backfill.slices[2] and len(parts) < 6:
            raise RuntimeError("the disk is gone")
        return read(session, pipeline, settings, part)

    monkeypatch.setattr(module, "read_range", read_or_fail)
    damaged = rows_of("out", "id", "n")
    with pytest.raises(BackfillError, match=r"slice 3 .*the disk is gone"):
        run_backfill(pipeline, settings, backfill.id)
    assert len(parts) == 5
    assert rows_of("out", "id", "n") == damaged  # it is swapped whole or not at all
    assert verify(Backfills(pipeline, settings), backfill).problems == (
        "of 5 slices, these are not done: 3",
    )
    run_backfill(pipeline, settings, backfill.id, [2])
    assert rows_of("out", "id", "n") == damaged  # a slice by itself swaps nothing
    assert len(rows_of("quarantine/p", "run_id")) == 10  # as the live run left it
    (told,) = verify(Backfills(pipeline, settings), backfill).problems
    assert told == "main was to have 90 rows of the range, and it was not swapped yet"
    run_backfill(pipeline, settings, backfill.id)
    assert parts[5:] == [backfill.slices[2]]
    assert rows_of("out", "id", "n") == expected
    run_backfill(pipeline, settings, backfill.id)  # once more does nothing
    assert rows_of("out", "id", "n") == expected
    verification = verify(Backfills(pipeline, settings), backfill)
    assert verification.sinks == (SinkAudit("main", 100, 10, 0, 0, 0, 90, 90, held=90),)
    assert (verification.problems, verification.failed) == ((), {"small": 10})
    aside = rows_of("quarantine/p", "run_id", "file")
    assert len(aside) == 10  # what the live run put aside of the range was judged anew
    assert {run_id for run_id, _ in aside} == {backfill.id}
    assert "it adds up" in render(verification)


def test_rows_are_added_only_where_there_are_none(
    spark, runs, pipeline_of, settings, land, begin, rows_of
):
    pipeline = pipeline_of(FILES)
    land(0, 1)
    runs.run(pipeline)
    expected = rows_of("out", "id", "n")
    with pytest.raises(BackfillError, match="has 20 rows of it already; take mode replace"):
        begin(pipeline, mode="append", glob="*.json")
    spark.sql(f"DELETE FROM delta.`{settings.locate_url('out')}` WHERE id < 10")
    backfill = begin(pipeline, mode="append", paths=["it's 0.json"])
    run_backfill(pipeline, settings, backfill.id)
    assert rows_of("out", "id", "n") == expected


def test_rows_that_somebody_else_adds_meanwhile_are_not_there_twice(
    spark, runs, pipeline_of, settings, land, begin, rows_of, monkeypatch
):
    pipeline = pipeline_of(FILES)
    land(0, 1)
    runs.run(pipeline)
    expected = rows_of("out", "id", "n")
    spark.sql(f"DELETE FROM delta.`{settings.locate_url('out')}` WHERE id < 10")
    one, other = (begin(pipeline, mode="append", paths=["it's 0.json"]) for _ in range(2))
    claim, rivals = module._Filling._claim, [other]

    def claim_late(self, query, part):
        claim(self, query, part)
        if rivals:
            run_backfill(pipeline, settings, rivals.pop().id)

    monkeypatch.setattr(module._Filling, "_claim", claim_late)
    run_backfill(pipeline, settings, one.id)
    assert not rivals
    assert rows_of("out", "id", "n") == expected


def test_versions_are_merged_by_their_keys(
    spark, runs, pipeline_of, settings, land, begin, rows_of
):
    bronze = pipeline_of(
        FILES, transform={"sql": "SELECT *, 'fine' AS other FROM input"}, sink={"table": "bronze"}
    )
    keyed = {"table": "silver", "mode": "upsert", "keys": ["id"], "sequence": ["n"]}
    source = {"type": "delta", "table": "bronze", "max_files_per_trigger": 1}
    silver = pipeline_of(source, name="silver", sink=keyed)
    for number in range(3):
        land(number)
        runs.run(bronze)
    runs.run(silver)
    expected = rows_of("silver", "id", "n")
    assert len(expected) == 30
    table = f"delta.`{settings.locate_url('silver')}`"
    spark.sql(f"DELETE FROM {table} WHERE id % 2 = 0")
    spark.sql(f"UPDATE {table} SET other = 'broken' WHERE id % 3 = 0")
    backfill = begin(silver, mode="merge", first_version=0, last_version=1, slices=2)
    assert backfill.rows == 20
    run_backfill(silver, settings, backfill.id)
    healed = [row for row in expected if row[0] < 20 or row[0] % 2]
    assert rows_of("silver", "id", "n") == healed
    healed_others = {row[0] for row in rows_of("silver", "id", "other") if row[1] == "broken"}
    assert healed_others == {21, 27}
    assert verify(Backfills(silver, settings), backfill).problems == ()


def test_versions_are_swapped_where_rows_tell_their_file(
    spark, runs, pipeline_of, settings, land, begin, damage, rows_of
):
    bronze = pipeline_of(FILES, sink={"table": "bronze"})
    source = {"type": "delta", "table": "bronze", "max_files_per_trigger": 1, "provenance": True}
    doubled = {"sql": "SELECT *, n * 2 AS twice FROM input WHERE n % 2 = 0"}
    silver = pipeline_of(source, name="silver", transform=doubled, sink={"table": "silver"})
    for number in range(4):
        land(number)
        runs.run(bronze)
    runs.run(silver)
    expected = rows_of("silver", "id", "n", "twice")
    assert len(expected) == 20
    damage("silver")
    damaged = rows_of("silver", "id", "n", "twice")
    backfill = begin(silver, mode="replace", first_version=1, last_version=2, slices=2)
    run_backfill(silver, settings, backfill.id)
    healed = [row for row in expected if 10 <= row[0] < 30]
    healed += [row for row in damaged if not 10 <= row[0] < 30]
    assert rows_of("silver", "id", "n", "twice") == sorted(healed)
    verification = verify(Backfills(silver, settings), backfill)
    assert verification.sinks == (SinkAudit("main", 20, 0, 0, 10, 0, 10, 10, held=10),)
    assert verification.problems == ()

    # A stream that begins with rearranged rows cannot tell which version they came from.
    spark.sql(f"OPTIMIZE delta.`{settings.locate_url('bronze')}`")
    late = pipeline_of(source, name="late", sink={"table": "late"})
    runs.run(late)
    before = rows_of("late", "id", "n")
    begun = begin(late, mode="replace", first_version=1, last_version=2)
    with pytest.raises(BackfillError, match="OPTIMIZE had made of earlier ones"):
        run_backfill(late, settings, begun.id)
    assert rows_of("late", "id", "n") == before


def test_steps_that_leave_out_where_rows_came_from_are_refused(
    runs, pipeline_of, settings, land, begin
):
    pipeline = pipeline_of(FILES, transform={"sql": "SELECT id, n FROM input"})
    land(0)
    runs.run(pipeline)
    with pytest.raises(BackfillError, match="the rows of out have no _file"):
        begin(pipeline, mode="replace", glob="*")
    settings.locate("out").rename(settings.locate("elsewhere"))
    begun = begin(pipeline, mode="replace", glob="*")
    with pytest.raises(BackfillError, match="the steps of p leave out _file"):
        run_backfill(pipeline, settings, begun.id)


@pytest.mark.parametrize("policy", ["evolve", "rescue"])
def test_a_swap_takes_new_columns_as_a_live_run_does(
    runs, pipeline_of, settings, land, begin, rows_of, policy
):
    old = pipeline_of(FILES, schema_change=policy)
    land(0, 1)
    runs.run(old)
    more = {"sql": "SELECT *, n * 2 AS twice FROM input"}
    new = pipeline_of(FILES, schema_change=policy, transform=more)
    land(2)
    runs.run(new)
    run_backfill(new, settings, begin(new, mode="replace", glob="*[12].json").id)
    if policy == "evolve":
        rows = [(n, None if n < 10 else n * 2) for n in range(30)]
        assert rows_of("out", "id", "twice") == rows
    else:
        found = rows_of("out", "id", "_rescued")
        assert [(id_, bool(kept)) for id_, kept in found] == [(n, n >= 10) for n in range(30)]


def test_a_table_that_is_gone_comes_back_as_it_was_laid_out(
    spark, runs, pipeline_of, settings, land, begin, rows_of
):
    laid_out = {"partition_by": ["odd"]}
    pipeline = pipeline_of(
        FILES, transform={"sql": "SELECT *, n % 2 AS odd FROM input"}, sink=laid_out
    )
    land(0)
    runs.run(pipeline)
    expected = rows_of("out", "id", "odd")
    settings.locate("out").rename(settings.locate("gone"))
    run_backfill(pipeline, settings, begin(pipeline, mode="replace", glob="*").id)
    assert rows_of("out", "id", "odd") == expected
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{settings.locate_url('out')}`").first()
    assert detail["partitionColumns"] == ["odd"]


def test_a_first_snapshot_that_is_half_read_is_not_backfilled(
    runs, pipeline_of, settings, land, begin
):
    bronze = pipeline_of(FILES, sink={"table": "bronze"})
    source = {"type": "delta", "table": "bronze", "max_files_per_trigger": 1, "provenance": True}
    silver = pipeline_of(source, name="silver", sink={"table": "silver"}, budget={"max_batches": 1})
    for number in range(3):
        land(number)
        runs.run(bronze)
    runs.run(silver)
    with pytest.raises(BackfillError, match="have not committed versions from 0 on"):
        begin(silver, mode="replace", first_version=0, last_version=1)


def test_steps_that_remember_are_refused_with_the_reason(runs, pipeline_of, settings, land, begin):
    settings.pipelines.mkdir()
    (settings.pipelines / "backfilled.py").write_text(
        "def once(df, context):\n    return df.dropDuplicates(['id'])\n"
    )
    pipeline = pipeline_of(FILES, transform={"python": "backfilled:once"})
    land(0)
    runs.run(pipeline)
    with pytest.raises(BackfillError, match="remember rows"):
        run_backfill(pipeline, settings, begin(pipeline, mode="replace", glob="*").id)


@pytest.mark.kafka
def test_offsets_are_swapped(runs, pipeline_of, settings, begin, damage, rows_of, kafka_default):
    topic = kafka_default.create(partitions=2)
    value = {"format": "json", "schema": "id long, n long"}
    source = {"type": "kafka", "topics": [topic], "value": value, "max_offsets_per_trigger": 20}
    pipeline = pipeline_of(source)
    for partition in range(2):
        records = [{"id": n, "n": n} for n in range(partition * 30, partition * 30 + 30)]
        kafka_default.produce(topic, [*records[:10], b"broken", *records[10:]], partition=partition)
    runs.run(pipeline)
    expected = rows_of("out", "id", "n", "_partition", "_offset")
    assert len(expected) == 60
    damage()
    damaged = rows_of("out", "id", "n", "_partition", "_offset")
    spans = {topic: {"0": [5, 25], "1": [0, 31]}}
    backfill = begin(pipeline, mode="replace", offsets=spans, slices=4)
    run_backfill(pipeline, settings, backfill.id)

    def is_within(row):
        start, end = spans[topic][str(row[2])]
        return start <= row[3] < end

    healed = [row for row in expected if is_within(row)]
    healed += [row for row in damaged if not is_within(row)]
    assert rows_of("out", "id", "n", "_partition", "_offset") == sorted(healed)
    verification = verify(Backfills(pipeline, settings), backfill)
    assert verification.sinks == (SinkAudit("main", 51, 2, 0, 0, 0, 49, 49, held=49),)
    assert verification.problems == ()
