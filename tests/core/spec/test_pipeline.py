from datetime import UTC, datetime, timedelta
from multiprocessing.reduction import ForkingPickler

import pytest
from pydantic import ValidationError

from tidegate.core.spec import DeltaSink, DeltaSource, Pipeline, RateSource, SqlStep, load_specs
from tidegate.core.spec.transform import StaticDelta

EVERYTHING = """\
name: orders_gold
description: Sales
owner: sales
tags: [demo, gold]
after: [orders_silver]
start_date: 2026-01-01
retries: 5
retry_delay: 2m
spark_connection: spark_big
pool: spark
source: {type: delta, table: silver/orders, max_files_per_trigger: 10}
tables:
  customers: {type: delta, table: customers}
transform:
  - sql: SELECT * FROM input
sinks:
  - {type: delta, table: gold/sales}
spark: {spark.sql.shuffle.partitions: 8}
"""
PRESETS = ["@once", "@continuous", "@hourly", "@daily", "@weekly", "@monthly", "@yearly"]


def build_everything():
    return Pipeline(
        name="orders_gold",
        description="Sales",
        owner="sales",
        tags=("demo", "gold"),
        after=("orders_silver",),
        start_date=datetime(2026, 1, 1, tzinfo=UTC),
        retries=5,
        retry_delay=timedelta(minutes=2),
        spark_connection="spark_big",
        pool="spark",
        source=DeltaSource(type="delta", table="silver/orders", max_files_per_trigger=10),
        tables={"customers": StaticDelta(type="delta", table="customers")},
        transform=(SqlStep(sql="SELECT * FROM input"),),
        sinks=(DeltaSink(type="delta", table="gold/sales"),),
        spark={"spark.sql.shuffle.partitions": "8"},
    )


def build_smallest(**fields):
    parts = {
        "name": "orders",
        "source": RateSource(type="rate", rows_per_batch=5),
        "sinks": (DeltaSink(type="delta", table="out"),),
    }
    return Pipeline(**parts | fields)


def test_a_pipeline_from_yaml_equals_one_built_in_python(parse):
    assert parse(EVERYTHING) == build_everything()


def test_the_smallest_pipeline_from_yaml_equals_one_built_in_python(write, parse):
    assert parse(write()) == build_smallest()


def test_pipelines_that_differ_in_one_field_are_not_equal():
    assert build_smallest() != build_smallest(retries=9)


def test_a_single_step_equals_a_list_of_one():
    step = SqlStep(sql="SELECT 1")
    assert build_smallest(transform=step) == build_smallest(transform=[step])


def test_a_pipeline_has_safe_defaults(write, parse):
    pipeline = parse(write())
    assert (pipeline.owner, pipeline.pool) == ("airflow", "default_pool")
    assert pipeline.spark_connection == "spark_default"
    assert (pipeline.retries, pipeline.retry_delay) == (2, timedelta(seconds=30))
    assert (pipeline.schedule, pipeline.after, pipeline.start_date) == (None, (), None)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["schedule: '@daily'", "after: [other]"], "takes schedule or after, not both"),
        (["after: [orders]"], "cannot come after itself"),
        (["after: [other, orders]"], "cannot come after itself"),
        (
            ["tables: {input: {type: delta, table: x}}"],
            "tables must not have one named 'input': that is the rows so far",
        ),
    ],
)
def test_fields_that_conflict_are_told(write, problem_of, lines, problem):
    assert problem_of(write(*lines)) == f"pipeline: {problem}"


def test_an_empty_after_conflicts_with_nothing(write, parse):
    assert parse(write("schedule: '@daily'", "after: []")).schedule == "@daily"


def test_a_pipeline_cannot_write_to_the_table_it_reads(write_delta, problem_of):
    problem = problem_of(write_delta(table="out"))
    assert problem == "pipeline: must not write to the table it reads"


@pytest.mark.parametrize("table", ["out/", "./out", "'out '", "a/../out"])
def test_the_table_it_reads_is_known_however_it_is_spelled(write_delta, problems_of, table):
    assert problems_of(write_delta(table=table))


def test_conflicts_are_found_between_parts_built_in_python():
    with pytest.raises(ValidationError, match="must not write to the table it reads"):
        build_smallest(source=DeltaSource(type="delta", table="out", max_files_per_trigger=1))


def test_a_pipeline_may_read_and_write_other_tables(write_delta, parse):
    assert parse(write_delta(table="out_of")).source.table == "out_of"


def test_a_reserved_table_name_is_known_despite_spaces(write, problem_of):
    assert "'input'" in problem_of(write("tables: {'input ': {type: delta, table: x}}"))


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("name: a\nsource:\nsinks: [null]\n", ["sinks[0]", "pipeline:"]),
        ("name: a\nsource: x\nsinks: [x]\n", ["source", "sinks[0]"]),
    ],
)
def test_parts_that_are_no_parts_are_not_also_called_the_same_table(problems_of, text, places):
    assert [problem.split(" ")[0] for problem in problems_of(text)] == places


@pytest.mark.parametrize(
    "schedule",
    [
        "*/15 * * * *",
        "0 0 * * *",
        "0 6-18/2 1,15 * MON-FRI",
        "0 0 L * *",
        "  5 4 * * sun  ",
        *PRESETS,
    ],
)
def test_a_cron_expression_or_a_preset_is_taken(write, parse, schedule):
    assert parse(write(f"schedule: '{schedule}'")).schedule == schedule.strip()


@pytest.mark.parametrize(
    "schedule",
    [
        "often",
        "* * * *",
        "60 * * * *",
        "* 24 * * *",
        "*/0 * * * *",
        "0 0 * * *; rm -rf /",
        "5",
        "",
        "@DAILY",
        "@every 5m",
        "@reboot",
        "@",
    ],
)
def test_any_other_schedule_is_refused_with_what_is_allowed(write, problem_of, schedule):
    problem = problem_of(write(f"schedule: '{schedule}'"))
    assert problem.startswith("schedule (line 4): ")
    assert problem.endswith(f"one of {', '.join(PRESETS)}; found {schedule!r}")


@pytest.mark.parametrize("schedule", ["0 */15 * * * *", "* * * * * * *"])
def test_a_cron_expression_of_more_than_five_fields_is_refused(write, problem_of, schedule):
    assert "five fields" in problem_of(write(f"schedule: '{schedule}'"))


def test_a_cron_expression_that_never_comes_is_refused(write, problem_of):
    assert problem_of(write("schedule: '0 0 31 2 *'")).startswith("schedule (line 4): ")


def test_an_empty_schedule_means_by_hand(write, parse):
    assert parse(write("schedule:")).schedule is None


@pytest.mark.parametrize("field", ["pool", "spark_connection"])
def test_a_name_of_airflow_cannot_be_empty(write, problem_of, field):
    assert problem_of(write(f"{field}: ''")).startswith(f"{field} (line 4): ")


@pytest.mark.parametrize("word", ["yes", "no", "on", "off", "y", "n"])
def test_a_word_that_older_yaml_takes_for_a_truth_stays_a_word(write, parse, word):
    pipeline = parse(write(f"owner: {word}", f"tags: [{word}]"))
    assert (pipeline.owner, pipeline.tags) == (word, (word,))


def test_a_pipeline_is_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        build_smallest().name = "other"


def test_a_pipeline_holds_mappings_and_is_not_hashable():
    with pytest.raises(TypeError, match="unhashable"):
        hash(build_smallest())


@pytest.mark.parametrize("build", [build_everything, build_smallest])
def test_a_pipeline_survives_pickling(build):
    pipeline = build()
    assert ForkingPickler.loads(ForkingPickler.dumps(pipeline)) == pipeline


def test_every_demo_pipeline_survives_pickling(demo_folder):
    specs = load_specs(demo_folder, {})
    assert ForkingPickler.loads(ForkingPickler.dumps(specs)) == specs
    assert [spec.require().name for spec in specs] == [
        "click_sessions",
        "customer_history",
        "event_fan_out",
        "fraud_alerts",
        "orders_bronze",
        "orders_gold",
        "orders_silver",
        "purchases_per_hour",
        "sensor_windows",
        "weather_files",
        "word_count",
    ]


@pytest.mark.parametrize("build", [build_everything, build_smallest])
def test_a_pipeline_that_is_dumped_is_read_back(build):
    pipeline = build()
    assert Pipeline.model_validate(pipeline.model_dump(mode="json", by_alias=True)) == pipeline


@pytest.mark.parametrize(
    ("mode", "sink", "problem"),
    [
        ("update", "{type: delta, table: out}", "output_mode update needs mode upsert"),
        ("complete", "{type: delta, table: out}", "output_mode complete needs mode overwrite"),
        ("complete", "{type: jdbc, connection: c, table: t}", "take output_mode update with mode"),
        ("complete", "{type: kafka, topic: t}", "would be sent all results again with every batch"),
        ("complete", "{type: spark, format: parquet}", "would be sent all results again"),
        (
            "complete",
            "{type: files, path: x, format: csv}",
            "cannot take back a result of complete",
        ),
        ("update", "{type: spark, format: parquet}", "would keep every state of a result"),
        (
            "update",
            "{type: delta, table: out, mode: upsert, keys: id, sequence: at}",
            "would take an older state of a result for the newer one by at; with output_mode update",
        ),
        (
            "update",
            "{type: jdbc, connection: c, table: t, mode: upsert, keys: id, sequence: [at, _batch]}",
            "sequence must be _batch or begin with it",
        ),
        ("append", "{type: delta, table: out, mode: overwrite}", "goes with output_mode complete"),
        ("update", "{type: files, path: x, format: csv}", "which cannot take back a result of upd"),
    ],
)
def test_a_sink_that_does_not_go_with_the_output_mode_is_told(
    write, problem_of, mode, sink, problem
):
    told = problem_of(write(f"output_mode: {mode}", sinks=f"[{sink}]"))
    assert told.startswith("pipeline: sinks[0] ")
    assert problem in told


@pytest.mark.parametrize(
    ("mode", "sink"),
    [
        ("update", "{type: delta, table: out, mode: upsert, keys: id, sequence: _batch}"),
        ("complete", "{type: delta, table: out, mode: overwrite}"),
        ("update", "{type: delta, table: o, mode: upsert, keys: id, sequence: [_batch, at]}"),
        (
            "update",
            "{type: jdbc, connection: c, table: t, mode: upsert, keys: i, sequence: _batch}",
        ),
        ("update", "{type: python, function: a:b}"),
        ("complete", "{type: python, function: a:b}"),
        ("update", "{type: kafka, topic: t}"),
    ],
)
def test_a_sink_that_goes_with_the_output_mode_is_taken(write, parse, mode, sink):
    assert parse(write(f"output_mode: {mode}", sinks=f"[{sink}]")).output_mode == mode


@pytest.mark.parametrize(
    ("trigger", "reason"),
    [
        ("once", "once reads all that waits as one batch"),
        ("continuous", "a continuous query never ends"),
        ("processingTime", "such a query never ends"),
        ("hourly", "bounded batches up to the end; for fresher data, schedule runs more often"),
    ],
)
def test_another_trigger_is_refused_with_the_reason(write, problem_of, trigger, reason):
    problem = problem_of(write(f"trigger: {trigger}"))
    assert problem.startswith("trigger (line 4): must be available_now, ")
    assert reason in problem


def test_a_watermark_belongs_to_a_source(write, parse, problems_of):
    source = "source: {{type: rate, rows_per_batch: 5, watermark: {}}}"
    pipeline = parse(write(source=source.format("{column: timestamp, delay: 10m}")))
    assert pipeline.source.watermark.delay == timedelta(minutes=10)
    told = problems_of(write(source=source.format("{column: a b, delay: soon, nope: 1}")))
    assert len(told) == 3
    assert "source.watermark.nope (line 2): unknown key; allowed are column, delay" in told


TWO = "sources: {a: {type: rate, rows_per_batch: 1}, b: {type: delta, table: x, %s}}"
BOUND = "max_files_per_trigger: 1"
JOIN = "transform: {sql: SELECT 1}"


def test_several_sources_go_by_their_names(write, parse):
    pipeline = parse(write(JOIN, source=TWO % BOUND))
    assert list(pipeline.inputs) == ["a", "b"]
    assert list(parse(write()).inputs) == ["0"]


@pytest.mark.parametrize(
    ("source", "lines", "problem"),
    [
        (TWO % BOUND, [], "several sources need a step that brings their rows together"),
        (
            TWO % BOUND,
            [JOIN, "source: {type: rate, rows_per_batch: 1}"],
            "needs source, or sources by name",
        ),
        ("sources: {a: {type: rate, rows_per_batch: 1}}", [JOIN], "sources is for two or more"),
        (TWO % BOUND, [JOIN, "tables: {a: {type: delta, table: y}}"], "both have a"),
        (TWO.replace("a:", "input:") % BOUND, [JOIN], "must not have one named 'input'"),
        (TWO % "nope: 1, max_files_per_trigger: 1", [JOIN], "sources.b.nope (line 2): unknown key"),
    ],
)
def test_sources_that_cannot_be_right_are_told(write, problem_of, source, lines, problem):
    assert problem in problem_of(write(*lines, source=source))


FROM_FILES = {"type": "files", "path": "x", "format": "text", "max_files_per_trigger": 1}
FROM_TABLE = {"type": "delta", "table": "x", "max_files_per_trigger": 1}
APPEND = {"type": "delta", "table": "out"}
UPSERT = APPEND | {"mode": "upsert", "keys": "id", "sequence": "at"}


@pytest.mark.parametrize(
    ("source", "sink", "said", "expected"),
    [
        (FROM_FILES, APPEND, None, "rescue"),
        (FROM_TABLE, APPEND, None, "fail"),
        (FROM_FILES, UPSERT, None, "fail"),
        (FROM_TABLE, APPEND, "rescue", "rescue"),
        (FROM_FILES, APPEND, "fail", "fail"),
        (FROM_FILES, UPSERT, "evolve", "evolve"),
    ],
)
def test_what_comes_from_outside_is_rescued_and_the_rest_refused(source, sink, said, expected):
    parts = {"name": "p", "source": source, "sinks": [sink], "schema_change": said}
    assert Pipeline.model_validate(parts).table_policy == expected


def test_only_what_is_appended_can_be_rescued():
    parts = {"name": "p", "source": FROM_FILES, "sinks": [UPSERT], "schema_change": "rescue"}
    with pytest.raises(
        ValidationError, match="is of mode upsert; schema_change rescue is for mode"
    ):
        Pipeline.model_validate(parts)


TWO_FOLDERS = [
    {"type": "files", "name": name, "path": path, "format": "json"}
    for name, path in (("a", "x"), ("b", "x/"))
]
ROUTED = APPEND | {"name": "kinds", "table": "out", "route_by": "kind"}


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"sinks": TWO_FOLDERS}, r"sinks\[0\]: x is written to by another sink too"),
        ({"quarantine": "out/"}, r"sinks\[0\]: out is where this pipeline puts rows aside"),
        ({"sinks": [{**APPEND, "table": "quarantine/p"}]}, r"sinks\[0\]: quarantine/p is where"),
        (
            {"sinks": [APPEND, {**APPEND, "name": "b", "table": "./out"}]},
            r"sinks\[0\]: out is the table of another sink too",
        ),
        (
            {"sinks": [ROUTED, {**APPEND, "table": "out/login"}]},
            r"sinks\[1\]: out/login is within out, where another sink names tables by a column",
        ),
        (
            {"sinks": [ROUTED], "quarantine": "out/aside"},
            r"quarantine: out/aside is within out, where another sink names tables",
        ),
        (
            {"expect": [{"name": "malformed", "check": "true"}]},
            "name must not be malformed: values that do not parse are put aside by it",
        ),
    ],
)
def test_places_and_names_that_would_mix_rows_are_refused(parts, told):
    whole = {"name": "p", "source": FROM_FILES, "sinks": [APPEND]} | parts
    with pytest.raises(ValidationError, match=told):
        Pipeline.model_validate(whole)
