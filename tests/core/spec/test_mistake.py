import pytest

from tidegate.core.spec.mistake import spell_place

PIPELINE = (
    "after, alerts, budget, confirm_timeout, description, expect, maintenance, name, output_mode, owner, pool, quarantine, retries, retry_delay, "
    "schedule, schema_change, sinks, source, sources, spark, spark_connection, start_date, tables, tags, transform, trigger"
)
FILES = (
    "archive_path, clean_source, format, glob, malformed, max_bytes_per_trigger, max_file_age, "
    "max_files_per_trigger, on_unknown, options, path, provenance, recursive, schema, type, watermark"
)
DELTA = (
    "change_data_feed, max_bytes_per_trigger, max_files_per_trigger, provenance, "
    "schema_tracking, skip_change_commits, "
    "starting_timestamp, starting_version, table, type, watermark"
)
SINK = (
    "cluster_by, columns, current, delete_when, expect, keys, mode, name, partition_by, route_by, "
    "sequence, table, track, type, valid_from, valid_to, where"
)

BLOCKS = {
    "": "{}: 1\n",
    "source": "source:\n  type: rate\n  rows_per_batch: 5\n  {}: 1\n",
    "files": "source:\n  type: files\n  path: x\n  format: text\n"
    "  max_files_per_trigger: 5\n  {}: 1\n",
    "delta": "source:\n  type: delta\n  table: x\n  max_files_per_trigger: 5\n  {}: 1\n",
    "sinks[0]": "sinks:\n  - type: delta\n    table: out\n    {}: 1\n",
    "transform[0] sql": "transform:\n  - sql: SELECT 1\n    {}: 1\n",
    "transform[0] python": "transform:\n  - python: m:f\n    {}: 1\n",
    "transform single": "transform:\n  sql: SELECT 1\n  {}: 1\n",
    "tables.t delta": "tables:\n  t:\n    type: delta\n    table: x\n    {}: 1\n",
    "tables.t files": "tables:\n  t:\n    type: files\n    path: x\n    format: csv\n"
    "    schema: id long\n    {}: 1\n",
}
REST = {
    "name": "name: orders\n",
    "source": "source: {type: rate, rows_per_batch: 5}\n",
    "sinks": "sinks: [{type: delta, table: out}]\n",
}


def write_with(block, key):
    text = BLOCKS[block].format(key)
    return text + "".join(line for field, line in REST.items() if not text.startswith(f"{field}:"))


@pytest.mark.parametrize(
    ("block", "key", "place", "told"),
    [
        ("", "nope", "nope (line 1)", f"allowed are {PIPELINE}"),
        ("", "retrys", "retrys (line 1)", f"did you mean retries? allowed are {PIPELINE}"),
        ("", "Owner", "Owner (line 1)", f"did you mean owner? allowed are {PIPELINE}"),
        ("source", "nope", "source.nope (line 4)", "allowed are rows_per_batch, type, watermark"),
        ("files", "nope", "source.nope (line 6)", f"allowed are {FILES}"),
        ("files", "shcema", "source.shcema (line 6)", f"did you mean schema? allowed are {FILES}"),
        (
            "files",
            "file_schema",
            "source.file_schema (line 6)",
            f"did you mean schema? allowed are {FILES}",
        ),
        ("files", "files", "source.files (line 6)", f"allowed are {FILES}"),
        ("delta", "path", "source.path (line 5)", f"allowed are {DELTA}"),
        ("sinks[0]", "nope", "sinks[0].nope (line 4)", f"allowed are {SINK}"),
        (
            "sinks[0]",
            "partion_by",
            "sinks[0].partion_by (line 4)",
            f"did you mean partition_by? allowed are {SINK}",
        ),
        ("sinks[0]", "delta", "sinks[0].delta (line 4)", f"allowed are {SINK}"),
        ("transform[0] sql", "nope", "transform[0].nope (line 3)", "allowed are sql"),
        ("transform[0] python", "nope", "transform[0].nope (line 3)", "allowed are python"),
        ("transform single", "nope", "transform[0].nope (line 3)", "allowed are sql"),
        ("tables.t delta", "nope", "tables.t.nope (line 5)", "allowed are table, type"),
        (
            "tables.t files",
            "nope",
            "tables.t.nope (line 7)",
            "allowed are format, options, path, schema, type",
        ),
    ],
)
def test_an_unknown_key_is_told_with_its_line_and_what_is_allowed(
    problem_of, block, key, place, told
):
    assert problem_of(write_with(block, key)) == f"{place}: unknown key; {told}"


@pytest.mark.parametrize("key", ["1", "true"])
def test_a_key_that_is_no_text_is_told_by_its_line(write, problem_of, key):
    problem = problem_of(write(f"{key}: x"))
    assert "(line 4)" in problem
    assert "Keys should be strings" in problem


def test_a_date_is_a_key_like_any_other(write, problem_of):
    problem = problem_of(write("2026-01-01: x"))
    assert problem == f"2026-01-01 (line 4): unknown key; allowed are {PIPELINE}"


def test_a_date_is_a_text_like_any_other(write, parse):
    assert parse(write("owner: 2026-01-01")).owner == "2026-01-01"


@pytest.mark.parametrize(
    ("line", "place", "found"),
    [
        ("owner: 5", "owner", "5"),
        ("owner: true", "owner", "True"),
        ("owner: 1.5", "owner", "1.5"),
        ("tags: [a, 7]", "tags[1]", "7"),
        ("tags: gold", "tags", "'gold'"),
        ("retries: -1", "retries", "-1"),
        ("retries: many", "retries", "'many'"),
        ("retry_delay: soon", "retry_delay", "'soon'"),
        ("start_date: soon", "start_date", "'soon'"),
        ("schedule: often", "schedule", "'often'"),
        ("after: [A]", "after[0]", "'A'"),
        ("spark: x", "spark", "'x'"),
        ("tables: {t: x}", "tables.t", "'x'"),
        ("tables: {t: {type: delta, table: 5}}", "tables.t.table", "5"),
        ("transform: {sql: 5}", "transform[0].sql", "5"),
    ],
)
def test_a_wrong_value_is_told_with_place_line_and_what_was_found(
    write, problem_of, line, place, found
):
    problem = problem_of(write(line))
    assert problem.startswith(f"{place} (line 4): ")
    assert problem.endswith(f"; found {found}")


@pytest.mark.parametrize(
    "line",
    [
        "owner:",
        "owner: [a]",
        "owner: {a: b}",
        "tags: 2026-01-01",
        "retry_delay:",
    ],
)
def test_a_wrong_value_that_is_no_single_value_is_told_too(write, problem_of, line):
    problem = problem_of(write(line))
    assert "(line 4): " in problem
    assert "found" in problem


@pytest.mark.parametrize("step", ["{}", "{spl: x}", "SELECT 1", "5", ""])
def test_a_step_that_is_none_is_told_with_what_a_step_is(write, problem_of, step):
    assert problem_of(write(f"transform: [{{sql: SELECT 1}}, {step or 'null'}]")) == (
        "transform[1] (line 4): a step is {sql: SELECT …}, {python: module:function} or "
        "{changes: debezium}"
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("owner: 5", "must be a text; found 5"),
        ("tags: gold", "must be a list; found 'gold'"),
        ("tags: {a: b}", "must be a list; found a mapping"),
        ("spark: [a]", "must be a mapping; found a list"),
        ("tables: x", "must be a mapping; found 'x'"),
        ("retries: many", "must be a whole number; found 'many'"),
        ("retries: 1.5", "must be a whole number; found 1.5"),
        ("retries: true", "must be a whole number; found True"),
    ],
)
def test_a_value_of_another_type_is_told_in_words_of_yaml(write, problem_of, line, told):
    assert problem_of(write(line)) == f"{line.partition(':')[0]} (line 4): {told}"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("name: a\nsource: x\nsinks: [{type: delta, table: out}]\n", "source (line 2)"),
        ("name: a\nsource: {type: rate, rows_per_batch: 1}\nsinks: x\n", "sinks (line 3)"),
        ("name: a\nsource: {type: rate, rows_per_batch: 1}\nsinks: [x]\n", "sinks[0] (line 3)"),
        (
            "name: a\nsource: {type: rate, rows_per_batch: 1}\nsinks: {type: delta, table: x}\n",
            "sinks (line 3)",
        ),
    ],
)
def test_a_shape_that_is_wrong_is_told_in_words_of_yaml(problem_of, text, place):
    problem = problem_of(text)
    assert problem.startswith(place)
    for word in ("tuple", "dictionary", "instance", "object", "DeltaSink"):
        assert word not in problem


@pytest.mark.parametrize("line", ["after: [A]", "transform: {python: nope}"])
def test_a_wrong_name_is_told_in_words_and_not_as_a_pattern(write, problem_of, line):
    assert "pattern" not in problem_of(write(line))


TEXT = """\
name: orders

# a comment
source:
  type: files
  options: {a: 1,
    b: 2}
tags:
- x
- y
sinks: [{type: delta}]
<<: &merged
  owner: me
"""


@pytest.mark.parametrize(
    ("place", "spelled"),
    [
        ((), "pipeline"),
        (("name",), "name (line 1)"),
        (("source",), "source (line 4)"),
        (("source", "type"), "source.type (line 5)"),
        (("source", "options", "b"), "source.options.b (line 7)"),
        (("source", "missing"), "source.missing (line 4)"),
        (("tags", 1), "tags[1] (line 10)"),
        (("tags", 7), "tags[7] (line 8)"),
        (("sinks", 0, "table"), "sinks[0].table (line 11)"),
        (("missing",), "missing"),
        (("name", "deeper"), "name.deeper (line 1)"),
        (("owner",), "owner"),
    ],
)
def test_a_place_is_spelled_as_a_person_would_with_the_nearest_line(place, spelled):
    assert spell_place(place, TEXT) == spelled


@pytest.mark.parametrize(
    "sinks",
    [
        "[]",
        "[{type: delta, table: '*'}]",
        "[{type: delta, table: out, partition_by: [a, b c]}]",
        "[{type: delta, table: out, cluster_by: [a b]}]",
    ],
)
def test_a_list_is_not_called_short_because_what_is_in_it_is_wrong(write, problems_of, sinks):
    assert len(problems_of(write(sinks=sinks))) == 1
