import pytest
from pydantic import ValidationError

from tidegate.core.spec.files import FileFormat
from tidegate.core.spec.transform import PythonStep, SqlStep, StaticDelta, StaticFiles

STEP = "a step is {sql: SELECT …}, {python: module:function} or {changes: debezium}"


@pytest.mark.parametrize(
    ("transform", "steps"),
    [
        ("{sql: SELECT 1}", (SqlStep(sql="SELECT 1"),)),
        ("{python: 'a.b:c'}", (PythonStep(python="a.b:c"),)),
        (
            "[{sql: SELECT 1}, {python: 'm:f'}]",
            (SqlStep(sql="SELECT 1"), PythonStep(python="m:f")),
        ),
        ("[]", ()),
    ],
)
def test_steps_from_yaml_equal_those_built_in_python(write, parse, transform, steps):
    assert parse(write(f"transform: {transform}")).transform == steps


@pytest.mark.parametrize("step", ["{}", "{spl: SELECT 1}", "{SQL: SELECT 1}"])
def test_a_step_of_no_known_kind_is_told_what_a_step_is(write, problem_of, step):
    assert problem_of(write("transform:", f"  - {step}")) == f"transform[0] (line 5): {STEP}"


@pytest.mark.parametrize("step", ["SELECT 1", "5", "", "[a]", "true", "'module:function'"])
def test_a_step_that_is_no_mapping_is_told_what_a_step_is(write, problem_of, step):
    problem = problem_of(write("transform:", f"  - {step}"))
    assert problem.startswith("transform[0] (line 5): ")
    assert STEP in problem


def test_a_transform_that_is_text_is_told_what_a_step_is(write, problem_of):
    assert STEP in problem_of(write("transform: SELECT 1"))


def test_a_step_of_both_kinds_is_refused(write, problem_of):
    problem = problem_of(write("transform: {sql: SELECT 1, python: 'm:f'}"))
    assert problem == "transform[0].python (line 4): unknown key; allowed are sql"


@pytest.mark.parametrize("sql", ["''", "'  '", "5", "[a]"])
def test_sql_that_is_no_text_is_refused(write, problem_of, sql):
    problem = problem_of(write("transform:", f"  - sql: {sql}"))
    assert problem.startswith("transform[0].sql (line 5): ")


@pytest.mark.parametrize(
    "reference",
    [
        "clean",
        "orders.clean",
        "orders:",
        ":clean",
        "a:b:c",
        "a b:c",
        "../orders:clean",
        "a/b:c",
        "a..b:c",
        ".a:b",
        "a-b:c",
        "os:system('x')",
        "a:b; rm -rf /",
        "1a:b",
        "a:b.c",
        "",
    ],
)
def test_a_function_that_is_not_module_and_function_is_refused(write, problem_of, reference):
    problem = problem_of(write("transform:", f'  - python: "{reference}"'))
    assert problem.startswith("transform[0].python (line 5): ")
    assert problem.endswith(f"; found {reference!r}")


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("{type: delta, table: x}", StaticDelta(type="delta", table="x")),
        (
            "{type: files, path: x, format: csv, schema: id long, options: {header: true}}",
            StaticFiles(
                type="files",
                path="x",
                format=FileFormat.CSV,
                schema="id long",
                options={"header": "true"},
            ),
        ),
    ],
)
def test_a_static_table_from_yaml_equals_one_built_in_python(write, parse, table, expected):
    assert parse(write(f"tables: {{t: {table}}}")).tables == {"t": expected}


@pytest.mark.parametrize(
    ("table", "problems"),
    [
        ("{type: kafka}", ["tables.t (line 4): type is 'kafka'; allowed are delta, files"]),
        (
            "{table: x}",
            ["tables.t (line 4): type is required and missing; allowed are delta, files"],
        ),
        ("{type: delta}", ["tables.t.table (line 4): is required and missing"]),
        (
            "{type: files}",
            [
                "tables.t.path (line 4): is required and missing",
                "tables.t.format (line 4): is required and missing",
                "tables.t.schema (line 4): is required and missing",
            ],
        ),
    ],
)
def test_a_static_table_that_is_not_whole_is_told(write, problems_of, table, problems):
    assert problems_of(write(f"tables: {{t: {table}}}")) == problems


def test_a_table_may_be_named_after_a_type(write, problem_of):
    problem = problem_of(write("tables: {files: {type: delta}}"))
    assert problem == "tables.files.table (line 4): is required and missing"


@pytest.mark.parametrize(
    "build",
    [
        lambda: SqlStep(sql="SELECT 1"),
        lambda: PythonStep(python="m:f"),
        lambda: StaticDelta(type="delta", table="x"),
    ],
    ids=["sql", "python", "delta"],
)
def test_steps_and_static_tables_are_hashable_and_frozen(build):
    part = build()
    assert hash(part) == hash(build())
    field = next(reversed(type(part).model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(part, field, "other")


def test_static_files_have_options_and_are_not_hashable():
    with pytest.raises(TypeError, match="unhashable"):
        hash(StaticFiles(type="files", path="x", format="csv", schema="id long"))
