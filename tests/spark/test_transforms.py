"""Steps and static tables."""

from pathlib import Path

import pytest

from tidegate.core.errors import TransformError

RATE = {"type": "rate", "rows_per_batch": 4}


@pytest.fixture
def write_step(settings, monkeypatch):
    """Write a module of steps; each test has its own name for it, since imports are cached."""
    settings.pipelines.mkdir(parents=True, exist_ok=True)

    def write(module: str, text: str) -> None:
        (settings.pipelines / f"{module}.py").write_text(text)

    return write


def test_steps_follow_each_other(runs, pipeline_of, write_step, rows_of):
    write_step(
        "double_step", "def double(df, context):\n    return df.selectExpr('value * 2 AS value')"
    )
    steps = [
        {"sql": "SELECT value + 1 AS value FROM input"},
        {"python": "double_step:double"},
        {"sql": "SELECT value FROM input WHERE value > 2"},
    ]
    runs.run(pipeline_of(RATE, transform=steps))
    assert rows_of("out") == [(4,), (6,), (8,)]


def test_steps_join_static_tables(runs, pipeline_of, spark, settings, write_step, rows_of):
    names = spark.createDataFrame([(0, "zero"), (1, "one")], "value long, name string")
    names.write.format("delta").save(settings.locate_url("names"))
    folder = Path(settings.data) / "colours"
    folder.mkdir(parents=True)
    (folder / "c.csv").write_text("value,colour\n0,red\n")
    write_step(
        "join_step",
        "def add_colour(df, context):\n"
        "    return df.join(context.tables['colours'], 'value', 'left')",
    )
    pipeline = pipeline_of(
        RATE,
        tables={
            "names": {"type": "delta", "table": "names"},
            "colours": {
                "type": "files",
                "path": "colours",
                "format": "csv",
                "schema": "value long, colour string",
                "options": {"header": True},
            },
        },
        transform=[
            {"sql": "SELECT value, name FROM input JOIN names USING (value)"},
            {"python": "join_step:add_colour"},
        ],
    )
    runs.run(pipeline)
    assert set(rows_of("out", "value", "name")) == {(0, "zero"), (1, "one")}


def test_a_step_knows_its_pipeline_and_run(runs, pipeline_of, write_step, rows_of):
    write_step(
        "context_step",
        "def stamp(df, context):\n"
        "    return df.selectExpr(f\"'{context.pipeline}' AS p\", f\"'{context.run_id}' AS r\")",
    )
    runs.run(pipeline_of(RATE, transform={"python": "context_step:stamp"}))
    assert set(rows_of("out")) == {("p", "run 1")}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return None", "returned NoneType, not a DataFrame.*Return the rows"),
        ("return df.columns", "returned list, not a DataFrame"),
        ("return context.spark.range(1)", "returned a static DataFrame"),
        ("raise ValueError('no such thing')", "failed: ValueError: no such thing"),
        ("return df.select('nothing')", "failed: AnalysisException.*nothing"),
    ],
)
def test_a_step_that_gives_no_rows_is_told_so(
    runs, pipeline_of, write_step, settings, body, message
):
    module = f"bad_step_{abs(hash(body))}"
    write_step(module, f"def step(df, context):\n    {body}")
    with pytest.raises(TransformError, match=message):
        runs.run(pipeline_of(RATE, transform={"python": f"{module}:step"}))
    assert not settings.checkpoint_of("p").exists()
    assert not settings.locate("out").exists()


def test_a_static_table_that_is_missing_is_named(runs, pipeline_of):
    tables = {"names": {"type": "delta", "table": "nowhere"}}
    with pytest.raises(TransformError, match="static table names cannot be read"):
        runs.run(pipeline_of(RATE, tables=tables))
