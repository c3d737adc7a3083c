from pathlib import Path

import pytest

from tidegate.core.errors import SpecError
from tidegate.core.spec.files import FilesSource
from tidegate.core.spec.loader import LoadedSpec, load_pipeline, load_specs, parse_pipeline
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.sinks.delta import DeltaSink
from tidegate.core.spec.source import DeltaSource, RateSource
from tidegate.core.spec.transform import PythonStep, SqlStep, StaticDelta, StaticFiles

MANY = """\
name: Bad Name
owner: 5
tags: [fine, 7]
schedule: often
after: [../x]
start_date: yesterday
retries: -1
retry_delay: soon
spark_connection: ""
pool: ${NO_SUCH_POOL}
source:
  type: files
  path: ../landing
  format: jsno
  schema: id nope
  max_files_per_trigger: 0
  clean_source: archive
  recursive: maybe
  options: {password: x, mode: y}
  shcema: id long
tables:
  lookup: {type: kafka}
transform:
  - {spl: SELECT 1}
  - {python: rm -rf}
sinks:
  - {type: delta, table: "*", partition_by: [a], cluster_by: [b], nope: 1}
spark: {my.secret: x}
nonsense: 1
"""
MANY_PLACES = [
    "pool (line 10)",
    "name (line 1)",
    "owner (line 2)",
    "tags[1] (line 3)",
    "schedule (line 4)",
    "after[0] (line 5)",
    "start_date (line 6)",
    "retries (line 7)",
    "retry_delay (line 8)",
    "spark_connection (line 9)",
    "source.path (line 13)",
    "source.format (line 14)",
    "source.schema (line 15)",
    "source.max_files_per_trigger (line 16)",
    "source.recursive (line 18)",
    "source.options (line 19)",
    "source.shcema (line 20)",
    "source (line 11)",
    "source (line 11)",
    "tables.lookup (line 22)",
    "transform[0] (line 24)",
    "transform[1].python (line 25)",
    "sinks[0].table (line 27)",
    "sinks[0].nope (line 27)",
    "sinks[0] (line 27)",
    "spark (line 28)",
    "nonsense (line 29)",
    "pipeline",
]


@pytest.fixture
def folder(tmp_path):
    """Write files into a folder: text by file name, dots spelled as two underscores."""

    def fill(**files):
        for name, content in files.items():
            file = tmp_path / name.replace("__", ".")
            data = content if isinstance(content, bytes) else content.encode()
            file.write_bytes(data)
        return tmp_path

    return fill


def test_all_mistakes_of_a_spec_are_told_at_once():
    with pytest.raises(SpecError) as raised:
        parse_pipeline(MANY, "specs/many.yaml", {})
    told = [problem.split(": ")[0] for problem in raised.value.problems]
    assert sorted(told) == sorted(MANY_PLACES)
    assert raised.value.file == "specs/many.yaml"


def test_the_error_is_one_message_with_file_count_and_a_line_a_mistake():
    with pytest.raises(SpecError) as raised:
        parse_pipeline(MANY, "specs/many.yaml", {})
    first, *rest = str(raised.value).split("\n")
    assert first == f"specs/many.yaml has {len(MANY_PLACES)} mistakes:"
    assert rest == [f"  - {problem}" for problem in raised.value.problems]


def test_a_single_mistake_is_told_in_the_singular(write):
    with pytest.raises(SpecError, match=r"^orders.yaml has 1 mistake:\n  - owner \(line 4\): "):
        parse_pipeline(write("owner: 5"), "orders.yaml", {})


def test_what_is_required_is_told_at_once(problems_of):
    assert problems_of("{}") == [
        "name: is required and missing",
        "sinks: is required and missing",
        "pipeline: needs source, or sources by name",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file holds nothing; it must hold name:, source:, sinks: …"),
        ("# only a comment\n", "the file holds nothing; it must hold name:, source:, sinks: …"),
        ("- a\n- b\n", "the file holds a list; it must hold name:, source:, sinks: …"),
        (
            "name: a\nname: b\n",
            (
                'line 2, column 1: this is not YAML: found duplicate key "name" with value "b" '
                '(original value: "a")'
            ),
        ),
        (
            "name:\n\tx\n",
            "line 2, column 1: this is not YAML: found character '\\t' that cannot start any token",
        ),
        ("a: b: c", "line 1, column 5: this is not YAML: mapping values are not allowed here"),
        (
            "name: a\nsource: *other\n",
            "line 2, column 9: this is not YAML: found undefined alias 'other'",
        ),
    ],
)
def test_text_that_is_no_spec_is_told_by_its_line(problem_of, text, problem):
    assert problem_of(text) == problem


@pytest.mark.parametrize(
    "text",
    [
        "orders",
        "5",
        "true",
        "2026-01-01",
        "a: [",
        "[1, 2",
        "\0",
        "name: a\n---\nname: b\n",
        "name: {{ name }}",
        "name: `x`",
        "@name: x",
        "<xml/>",
        "name: !unknown x",
    ],
)
def test_text_that_is_no_spec_has_one_mistake(problem_of, text):
    assert problem_of(text)


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.mkdir [{made}]",
        "!!python/object/new:os.mkdir [{made}]",
        "!!python/name:os.system",
        "!!python/module:os",
        "!!python/object:os.system {{}}",
    ],
)
def test_a_python_tag_is_refused_and_runs_nothing(problem_of, write, tmp_path, tag):
    made = tmp_path / "made"
    problem = problem_of(write(f"owner: {tag.format(made=made)}"))
    assert problem.startswith("line 4, column 8: this is not YAML: could not determine a const")
    assert not made.exists()


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("start_date: 2026-02-30", id="a day that is none"),
        pytest.param("start_date: 2026-01-01 25:00:00", id="an hour that is none"),
        pytest.param("retries: !!int many", id="a number that is none"),
        pytest.param("retries: !!int ''", id="a number that is empty"),
        pytest.param("nope: 2026-02-30", id="a day that is none in a field that is none"),
        pytest.param("2026-02-30: x", id="a day that is none as a key"),
        pytest.param("nope: !!timestamp 5", id="a moment that is none"),
        pytest.param("nope: &a {<<: *a}", id="a mapping merged into itself"),
        pytest.param("tags: &a [*a]", id="a list within itself"),
        pytest.param("spark: &a {x: *a}", id="a mapping within itself"),
        pytest.param("tags: " + "[" * 1000, id="brackets without end"),
    ],
)
def test_yaml_that_cannot_become_values_is_a_mistake_and_no_crash(write, problems_of, line):
    assert problems_of(write(line))


@pytest.mark.parametrize("date", ["2026-02-30", "2026-01-01 25:00:00", "2026-13-01"])
@pytest.mark.parametrize("field", ["start_date", "source.starting_timestamp"])
def test_a_wrong_date_is_told_by_its_field(write, write_delta, problem_of, field, date):
    text = (
        write(f"start_date: {date}")
        if field == "start_date"
        else write_delta(starting_timestamp=date)
    )
    problem = problem_of(text)
    assert problem.startswith(f"{field} (line {4 if field == 'start_date' else 6}): ")
    assert problem.endswith(f"; found {date!r}")


@pytest.mark.timeout(5)
def test_aliases_that_multiply_do_not_fill_time_and_memory(problems_of, write):
    multiplied = [f"&a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 20)]
    assert problems_of(write(f"bomb: [&a0 [x], {', '.join(multiplied)}]"))


def test_anchors_aliases_and_merge_keys_are_plain_values(parse):
    text = """\
name: orders
tags: &tags [a, b]
spark: {spark.x: &x small}
owner: *x
source: {<<: {type: rate}, rows_per_batch: 5}
sinks: [{type: delta, table: *x}]
"""
    pipeline = parse(text)
    assert (pipeline.owner, pipeline.sinks[0].table) == ("small", "small")
    assert pipeline.source.type == "rate"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: "\ufeff" + text, id="a byte order mark"),
        pytest.param(lambda text: text.replace("\n", "\r\n"), id="Windows line ends"),
        pytest.param(lambda text: "---\n" + text + "...\n", id="document marks"),
        pytest.param(lambda text: "# é\n" + text, id="a comment beyond ASCII"),
    ],
)
def test_a_file_as_any_editor_saves_it_is_read(write, folder, change):
    (spec,) = load_specs(folder(orders__yaml=change(write())), {})
    assert spec.require().name == "orders"


WHOLE = {
    "name": "a",
    "source": "{type: rate, rows_per_batch: 5}",
    "sinks": "[{type: delta, table: out}]",
}
FILES = {"type": "files", "path": "x", "format": "json", "schema": "id long"}
DELTA = {"type": "delta", "table": "x"}
BOUND = {"max_files_per_trigger": "1"}
PARTS = [
    (Pipeline, WHOLE, None),
    (FilesSource, FILES | BOUND, "source: {}"),
    (DeltaSource, DELTA | BOUND, "source: {}"),
    (RateSource, {"type": "rate"}, "source: {}"),
    (DeltaSink, DELTA, "sinks: [{}]"),
    (StaticFiles, FILES, "tables: {{t: {}}}"),
    (StaticDelta, DELTA, "tables: {{t: {}}}"),
    (SqlStep, {}, "transform: [{}]"),
    (PythonStep, {}, "transform: [{}]"),
]
JUNK = [
    "",
    "5",
    "-1",
    "1.5",
    "true",
    "x",
    "[1]",
    "[[x]]",
    "[null]",
    "{1: 2}",
    "{x: {y: z}}",
    "[{}]",
    "2026-01-01",
    "99999999999999999999d",
    "!!set {a}",
]


def write_junk(fields, template):
    """Write a spec that is right but for one field of one part."""
    if template is None:
        return "".join(f"{key}: {value}\n" for key, value in fields.items())
    body = "{" + ", ".join(f"{key}: {value}" for key, value in fields.items()) + "}"
    part = template.format(body)
    rest = (f"{key}: {text}" for key, text in WHOLE.items() if not part.startswith(f"{key}:"))
    return "\n".join([part, *rest]) + "\n"


@pytest.mark.parametrize(
    ("fields", "template", "field"),
    [
        pytest.param(fields, template, field.alias or name, id=f"{model.__name__}.{name}")
        for model, fields, template in PARTS
        for name, field in model.model_fields.items()
    ],
)
def test_no_value_of_any_field_makes_the_loader_crash(fields, template, field):
    crashed = []
    for junk in JUNK:
        try:
            parse_pipeline(write_junk(fields | {field: junk}, template), "junk.yaml", {})
        except SpecError:
            continue
        except Exception as error:
            crashed.append(f"{field}: {junk} -> {type(error).__name__}: {error}")
    assert crashed == []


def test_specs_are_loaded_in_order_of_their_files(write, folder):
    specs = load_specs(folder(b__yaml=write(name="one"), a__yml=write(name="two"), c__txt="x"), {})
    assert [(spec.file.name, spec.require().name) for spec in specs] == [
        ("a.yml", "two"),
        ("b.yaml", "one"),
    ]


def test_the_demo_specs_have_no_mistakes(demo_folder):
    assert [spec.error for spec in load_specs(demo_folder, {})] == [None] * 11


def test_a_spec_keeps_its_file_and_its_text(write, folder):
    where = folder(orders__yaml=write())
    (spec,) = load_specs(where, {})
    assert (spec.file, spec.text) == (where / "orders.yaml", write())


def test_a_folder_without_specs_has_none(tmp_path):
    assert load_specs(tmp_path, {}) == []


@pytest.mark.parametrize("name", ["missing", "file"])
def test_a_folder_that_is_none_is_told_with_the_variable_to_set(tmp_path, name):
    (tmp_path / "file").write_text("x")
    with pytest.raises(SpecError, match="there is no such folder; set TIDEGATE_PIPELINES"):
        load_specs(tmp_path / name, {})


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        pytest.param("", "the file holds nothing", id="empty"),
        pytest.param("name: [", "this is not YAML", id="not YAML"),
        pytest.param("name: A\n", "name (line 1)", id="mistakes"),
        pytest.param(b"name: \xff\xfe", "cannot be read: 'utf-8'", id="not UTF-8"),
        pytest.param("name: a\n".encode("utf-16"), "cannot be read: 'utf-8'", id="UTF-16"),
        pytest.param("tables: 5\n", "tables (line 1)", id="tables that are none"),
        pytest.param("transform: SELECT 1\n", "transform", id="a transform that is text"),
        pytest.param("start_date: 2026-02-30\n", "start_date", id="a day that is none"),
    ],
)
def test_a_broken_spec_hides_no_other(write, folder, broken, problem):
    where = folder(a__yaml=write(name="a"), b__yaml=broken, c__yaml=write(name="c"))
    first, middle, last = load_specs(where, {})
    assert (first.require().name, last.require().name) == ("a", "c")
    assert problem in str(middle.error)
    assert str(middle.error).startswith(str(where / "b.yaml"))


@pytest.mark.parametrize("kind", ["folder", "dangling link"])
def test_what_cannot_be_opened_hides_no_other(write, folder, kind):
    where = folder(a__yaml=write(name="a"))
    if kind == "folder":
        (where / "b.yaml").mkdir()
    else:
        (where / "b.yaml").symlink_to("nowhere")
    good, bad = load_specs(where, {})
    assert good.require().name == "a"
    assert "cannot be read" in str(bad.error)


def test_two_specs_of_one_name_are_both_refused(write, folder):
    where = folder(a__yaml=write(), b__yaml=write(), c__yaml=write(name="other"))
    first, second, other = load_specs(where, {})
    for spec in (first, second):
        assert (spec.name, spec.pipeline.name) == ("orders", "orders")
        assert "'orders' is the name of 2 specs; give each its own" in str(spec.error)
        assert str(spec.error).startswith(str(spec.file))
        with pytest.raises(SpecError, match="is the name of 2 specs") as raised:
            spec.require()
        assert raised.value is spec.error
    assert other.require().name == "other"


def test_an_after_that_names_no_pipeline_is_refused_with_those_that_are(write, folder):
    where = folder(a__yaml=write("after: [missing, b]", name="a"), b__yaml=write(name="b"))
    bad, good = load_specs(where, {})
    (problem,) = bad.error.problems
    assert problem.startswith("after")
    assert problem.endswith(": there is no pipeline 'missing'; there are a, b")
    assert good.require().name == "b"


def test_an_after_that_names_a_broken_spec_is_not_called_missing(write, folder):
    where = folder(a__yaml=write("after: [b]", name="a"), b__yaml="name: b\n")
    good, bad = load_specs(where, {})
    assert good.require().after == ("b",)
    assert bad.error is not None


def test_an_after_that_names_a_broken_spec_in_a_file_of_another_name_is_not_called_missing(
    write, folder
):
    where = folder(a__yaml=write("after: [b]", name="a"), file__yaml="name: b\n")
    good, _ = load_specs(where, {})
    assert good.error is None


def test_all_that_is_wrong_between_specs_is_told_at_once(write, folder):
    text = write("after: [x, y]")
    first, _ = load_specs(folder(a__yaml=text, b__yaml=text), {})
    assert len(first.error.problems) == 3


@pytest.mark.parametrize(
    ("line", "place"), [("after: [nope]", "after[0] (line 4): "), ("owner: x", "name (line 1): ")]
)
def test_what_is_wrong_between_specs_is_told_by_its_line(write, folder, line, place):
    first, _ = load_specs(folder(a__yaml=write(line), b__yaml=write(line)), {})
    assert any(problem.startswith(place) for problem in first.error.problems)


def test_pipelines_that_wait_for_each_other_are_refused(write, folder):
    where = folder(a__yaml=write("after: [b]", name="a"), b__yaml=write("after: [a]", name="b"))
    assert all(spec.error for spec in load_specs(where, {}))


@pytest.mark.parametrize("file", ["orders__yaml", "orders__yml", "other__yaml"])
def test_a_pipeline_is_found_by_name_whatever_its_file(write, folder, file):
    where = folder(**{file: write(), "more__yaml": write(name="more")})
    assert load_pipeline(where, "orders", {}).require().name == "orders"


def test_a_pipeline_is_found_by_name_though_another_has_its_file(write, folder):
    where = folder(orders__yaml=write(name="other"), other__yaml=write(name="orders"))
    assert load_pipeline(where, "orders", {}).file.name == "other.yaml"


def test_a_pipeline_in_its_own_file_is_found_without_reading_the_others(write, folder):
    where = folder(orders__yaml=write("after: [nope]"), broken__yaml="[")
    assert load_pipeline(where, "orders", {}).require().after == ("nope",)


@pytest.mark.parametrize("file", ["orders__yaml", "orders__yml"])
def test_a_broken_pipeline_is_found_by_its_file_and_says_what_is_wrong(folder, file):
    spec = load_pipeline(folder(**{file: "name: orders\n"}), "orders", {})
    with pytest.raises(SpecError, match="2 mistakes"):
        spec.require()


@pytest.mark.parametrize("name", ["nope", "../orders", "/etc/passwd", "", "a\0b", "a b", "x" * 300])
def test_a_name_that_no_spec_has_is_told_with_those_that_are(write, folder, name):
    where = folder(orders__yaml=write(), b__yaml=write(name="b"), broken__yaml="[")
    with pytest.raises(SpecError) as raised:
        load_pipeline(where, name, {})
    assert raised.value.problems == (f"there is no pipeline {name!r} in it; there are b, orders",)


def test_a_name_that_leads_out_of_the_folder_reads_nothing_there(write, tmp_path):
    inside = tmp_path / "pipelines"
    inside.mkdir()
    (inside / "a.yaml").write_text(write(name="a"))
    (tmp_path / "broken.yaml").write_text("[")
    with pytest.raises(SpecError, match=r"there is no pipeline '../broken' in it; there are a$"):
        load_pipeline(inside, "../broken", {})


def test_a_name_that_two_specs_have_is_told_as_such(write, folder):
    spec = load_pipeline(folder(a__yaml=write(), b__yaml=write()), "orders", {})
    with pytest.raises(SpecError, match="is the name of 2 specs"):
        spec.require()


def test_a_pipeline_of_no_folder_is_told(tmp_path):
    with pytest.raises(SpecError, match="there is no such folder"):
        load_pipeline(tmp_path / "missing", "orders", {})


def test_a_spec_that_holds_neither_pipeline_nor_error_says_so():
    with pytest.raises(SpecError, match=r"x.yaml has 1 mistake:\n  - it holds no pipeline"):
        LoadedSpec(Path("x.yaml"), "").require()


FILES_SINK = "[{type: files, path: exports, format: json}]"
ROUTED_SINK = "[{type: delta, table: kinds, route_by: kind}]"


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (
            {"line": "quarantine: aside"},
            {"line": "quarantine: ./aside/"},
            "quarantine (line 4): aside is where a puts rows aside, and a replay would take those",
        ),
        (
            {},
            {"line": "quarantine: quarantine/a"},
            "quarantine (line 4): quarantine/a is where a puts rows aside",
        ),
        (
            {},
            {"sinks": "[{type: delta, table: quarantine/a}]"},
            "sinks[0] (line 3): quarantine/a is where a puts rows aside",
        ),
        (
            {"sinks": FILES_SINK},
            {"sinks": FILES_SINK},
            "sinks[0] (line 3): exports is written to by a too, and the log of a folder of files",
        ),
        (
            {"sinks": ROUTED_SINK},
            {"sinks": "[{type: delta, table: kinds/login}]"},
            "sinks[0] (line 3): kinds/login is within kinds, where a names tables by a column",
        ),
    ],
)
def test_folders_in_which_two_pipelines_would_mix_their_rows_are_told(
    write, folder, first, second, told
):
    texts = (
        write(*filter(None, [parts.get("line")]), name=name, **_without_line(parts))
        for name, parts in (("a", first), ("b", second))
    )
    a, b = texts
    (problem,) = load_specs(folder(a__yaml=a, b__yaml=b), {})[1].error.problems
    assert problem.startswith(told)


def _without_line(parts):
    return {key: value for key, value in parts.items() if key != "line"}


@pytest.mark.parametrize("sinks", ["[{type: delta, table: out}]", ROUTED_SINK])
def test_two_pipelines_may_add_to_one_table(write, folder, sinks):
    where = folder(a__yaml=write(name="a", sinks=sinks), b__yaml=write(name="b", sinks=sinks))
    assert [spec.error for spec in load_specs(where, {})] == [None, None]
