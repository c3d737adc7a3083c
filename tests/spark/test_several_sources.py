"""Several sources in one pipeline: joined by steps, each judged by its own target."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tidegate.core.errors import SinkError
from tidegate.core.ledger import Decision
from tidegate.spark.runner import run_pipeline
from tidegate.spark.sinks.delta import DeltaAppend

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
JOIN = {
    "sql": "SELECT v.id, v.page, c.id IS NOT NULL AS clicked FROM views v {} JOIN clicks c "
    "ON v.id = c.id AND c.at BETWEEN v.at AND v.at + INTERVAL 10 MINUTES"
}


def files(path, **more):
    return {
        "type": "files",
        "path": path,
        "format": "json",
        "schema": "id long, page string, at timestamp",
        "max_files_per_trigger": 1,
        "malformed": "drop",
        "provenance": False,
        "watermark": {"column": "at", "delay": "5m"},
        **more,
    }


def join(kind):
    return {"sql": JOIN["sql"].format(kind)}


@pytest.fixture
def land(settings):
    """Land a file of rows (id, minutes after noon) in a folder."""
    for folder in ("views", "clicks"):
        settings.locate(folder).mkdir(parents=True)

    def write(file, *rows):
        lines = (
            json.dumps({"id": number, "page": "x", "at": (NOON + timedelta(minutes=m)).isoformat()})
            for number, m in rows
        )
        settings.locate(file).write_text("\n".join(lines))

    return write


@pytest.fixture
def pair(pipeline_of):
    """A pipeline that joins views with clicks."""

    def build(kind, **parts):
        sources = {"views": files("views"), "clicks": files("clicks")}
        return pipeline_of(None, sources=sources, transform=join(kind), **parts)

    return build


def test_streams_are_joined_also_when_the_driver_was_killed_in_between(
    runs, pair, land, rows_of, settings, monkeypatch
):
    land("views/a.json", (1, 0), (2, 1), (3, 2))
    land("clicks/a.json", (1, 3))
    pipeline = pair("INNER")
    plan = runs.plan(pipeline)
    assert plan.reason == "views: 1 files to read; clicks: 1 files to read"
    assert plan.target.describe() == "1 files, 1 files"
    write = DeltaAppend.write

    def write_and_die(self, *arguments):
        write(self, *arguments)
        raise SinkError("The machine went away.")

    with monkeypatch.context() as patch:
        patch.setattr(DeltaAppend, "write", write_and_die)
        with pytest.raises(SinkError):
            run_pipeline(pipeline, settings, plan.run_id)
    run_pipeline(pipeline, settings, plan.run_id)
    assert runs.judge(pipeline, plan).verdict == "reached"
    assert rows_of("out", "id") == [(1,)]
    land("clicks/b.json", (2, 4))
    again = runs.plan(pipeline)
    assert again.reason == "views: no new files among 1; clicks: 1 files to read"
    runs.run(pipeline)
    assert rows_of("out", "id") == [(1,), (2,)]
    assert runs.plan(pipeline).decision is Decision.IDLE


def test_the_state_stays_laid_out_as_it_began_on_a_machine_with_other_cores(
    runs, pair, land, rows_of, settings
):
    land("views/a.json", *((number, 0) for number in range(20)))
    land("clicks/a.json", (99, 0))
    runs.run(pair("INNER"))
    state = settings.checkpoint_of("p") / "state" / "0"
    partitions = sorted(folder.name for folder in state.iterdir())
    land("clicks/b.json", *((number, 1) for number in range(20)))
    runs.run(pair("INNER", spark={"spark.sql.shuffle.partitions": "7"}))
    assert rows_of("out", "id") == [(number,) for number in range(20)]
    assert sorted(folder.name for folder in state.iterdir()) == partitions


def test_a_left_join_gives_what_found_no_match_once_it_is_final(runs, pair, land, rows_of):
    land("views/a.json", (1, 0), (2, 1))
    land("clicks/a.json", (1, 3))
    pipeline = pair("LEFT")
    runs.run(pipeline)
    assert rows_of("out", "id", "clicked") == [(1, True)]
    land("views/b.json", (9, 100))
    land("clicks/b.json", (8, 100))
    runs.run(pipeline)
    assert rows_of("out", "id", "clicked") == [(1, True), (2, False)]


def test_a_python_step_is_given_all_sources_by_name(runs, pipeline_of, land, rows_of, settings):
    settings.pipelines.mkdir(exist_ok=True)
    (settings.pipelines / "both.py").write_text(
        "def unite(df, context):\n"
        "    assert df.columns == context.sources['views'].columns\n"
        "    return df.unionByName(context.sources['clicks'])\n"
    )
    land("views/a.json", (1, 0))
    land("clicks/a.json", (2, 0))
    sources = {"views": files("views"), "clicks": files("clicks")}
    pipeline = pipeline_of(None, sources=sources, transform={"python": "both:unite"})
    runs.run(pipeline)
    assert rows_of("out", "id") == [(1,), (2,)]


def test_a_source_that_is_renamed_blocks_the_run(runs, pair, pipeline_of, land):
    land("views/a.json", (1, 0))
    land("clicks/a.json", (1, 3))
    runs.run(pair("INNER"))
    sources = {"views": files("views"), "taps": files("clicks")}
    changed = pipeline_of(
        None, sources=sources, transform={"sql": "SELECT v.id FROM views v JOIN taps t USING (id)"}
    )
    plan = runs.plan(changed)
    assert plan.decision is Decision.BLOCKED
    assert (
        "was reading clicks (files), views (files), and the spec says taps (files)" in plan.reason
    )
