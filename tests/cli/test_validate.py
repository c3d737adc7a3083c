import json
import shutil

import pytest

from tidegate.core.errors import SpecError
from tidegate.core.spec.export import export_schema

BROKEN = {
    "empty": "",
    "text": "just text\n",
    "items": "- a\n- b\n",
    "tabs": "name:\n\ttabs\n",
    "twice": "name: a\nname: b\n",
    "tagged": "name: !!python/object/apply:os.system [x]\n",
    "mistaken": "name: Bad Name\nnope: 1\n",
}


def test_the_demo_specs_are_right(call, demo_folder):
    result = call("validate", str(demo_folder))
    assert result.returncode == 0, result.stdout + result.stderr
    specs = sorted(demo_folder.glob("*.yaml"))
    assert result.stdout.splitlines() == [
        *(f"{spec}: ok" for spec in specs),
        "11 specs, 0 with mistakes",
    ]
    assert result.stderr == ""


def test_all_that_is_wrong_in_all_specs_is_told_at_once(call, add_spec, add_module, deployment):
    for name, text in BROKEN.items():
        add_spec(name, text=text)
    (deployment.pipelines / "bytes.yaml").write_bytes(b"name: \xff")
    add_spec("right")
    add_spec("lonely", "after: [missing]")
    add_spec("stepping", "transform: [{python: 'steps_v:nope'}, {python: 'no_module_v:f'}]")
    add_module("steps_v", "def clean(df, context): return df")
    result = call("validate")
    assert result.returncode == 1
    for name in (*BROKEN, "bytes", "lonely", "stepping"):
        assert f"{deployment.pipelines}/{name}.yaml has " in result.stdout
    assert f"{deployment.pipelines}/right.yaml: ok" in result.stdout
    for told in (
        "the file holds nothing",
        "line 2, column 1: this is not YAML: found duplicate key",
        "name (line 1): ",
        "nope (line 2): unknown key; ",
        "pipeline: needs source, or sources by name",
        "cannot be read: 'utf-8' codec",
        "there is no pipeline 'missing'",
        "steps_v has no function 'nope'. It has clean.",
        "The transform no_module_v:f cannot be imported: ModuleNotFoundError",
    ):
        assert told in result.stdout
    assert result.stdout.endswith("11 specs, 10 with mistakes\n")


def test_the_folder_of_the_deployment_is_the_default(invoke, add_spec, deployment):
    add_spec("orders")
    result = invoke("validate")
    assert result.exit_code == 0
    assert result.stdout == f"{deployment.pipelines}/orders.yaml: ok\n1 spec, 0 with mistakes\n"


def test_a_folder_without_specs_has_nothing_to_validate(invoke):
    result = invoke("validate")
    assert result.exit_code == 1
    assert result.stdout.startswith("0 specs, 0 with mistakes\nThere is nothing to validate")


@pytest.mark.parametrize("name", BROKEN)
def test_a_single_broken_spec_is_enough_to_fail(invoke, add_spec, name):
    add_spec("right")
    add_spec(name, text=BROKEN[name])
    result = invoke("validate")
    assert result.exit_code == 1
    assert result.stdout.endswith("2 specs, 1 with mistakes\n")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("owner: 5", "owner (line 4): "),
        ("after: [validated]", "pipeline: cannot come after itself"),
        ("after: [nowhere]", "there is no pipeline 'nowhere'; there are validated"),
        ("owner: ${NO_SUCH_VARIABLE_AT_ALL}", "the variable NO_SUCH_VARIABLE_AT_ALL is not set"),
        ("spark: {a.password: hunter2}", "a.password would hold a secret"),
        ("tables: 5", "tables (line 4): "),
        ("transform: SELECT 1", "a step is {sql: SELECT …}, {python: module:function} or {ch"),
        ("start_date: 2026-02-30", "start_date (line 4): "),
    ],
)
def test_a_mistake_is_told_and_fails(invoke, add_spec, line, told):
    add_spec("validated", line)
    result = invoke("validate")
    assert result.exit_code == 1
    assert told in result.stdout
    assert result.stdout.endswith("1 spec, 1 with mistakes\n")
    assert "hunter2" not in result.output


def test_two_specs_of_one_name_both_fail(invoke, add_spec, deployment):
    shutil.copy(add_spec("orders"), deployment.pipelines / "copy.yaml")
    result = invoke("validate")
    assert result.exit_code == 1
    assert result.stdout.count("'orders' is the name of 2 specs; give each its own") == 2


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def broken(:", "cannot be imported: SyntaxError"),
        ("raise RuntimeError('at import')", "cannot be imported: RuntimeError: at import"),
        ("import sys; sys.exit(0)", "cannot be imported: SystemExit"),
        ("def other(): ...", "has no function 'f'. It has other."),
        ("f = 5", "has no function 'f'. It has no functions."),
    ],
)
def test_a_transform_that_cannot_be_loaded_fails(invoke, add_spec, add_module, code, told):
    add_module("steps_w", code)
    add_spec("orders", "transform: [{sql: SELECT 1}, {python: 'steps_w:f'}]")
    result = invoke("validate")
    assert result.exit_code == 1
    assert "transform[1].python" in result.stdout
    assert told in result.stdout


def test_a_transform_that_cannot_be_loaded_is_told_by_its_line(invoke, add_spec):
    add_spec("orders", "transform:", "  - sql: SELECT 1", "  - python: no_module_x:f")
    assert "transform[1].python (line 6): " in invoke("validate").stdout


def test_a_transform_is_checked_even_if_something_else_is_wrong(invoke, add_spec):
    add_spec("orders", "after: [missing]", "transform: [{python: 'no_module_y:f'}]")
    result = invoke("validate")
    assert "there is no pipeline 'missing'" in result.stdout
    assert "no_module_y:f cannot be imported" in result.stdout


def test_a_transform_that_loads_is_right(invoke, add_spec, add_module):
    add_module("steps_z", "def f(df, context): return df")
    add_spec("orders", "transform: {python: 'steps_z:f'}")
    assert invoke("validate").exit_code == 0


def test_a_folder_that_is_none_is_an_error_of_ours(invoke):
    error = invoke("validate", "no/such/folder").exception
    assert isinstance(error, SpecError)
    assert str(error).startswith("no/such/folder has 1 mistake:\n  - there is no such folder")


def test_the_schema_is_printed_as_it_is(invoke):
    result = invoke("schema")
    assert (result.exit_code, result.stdout) == (0, export_schema())


def test_the_schema_is_written_to_a_file(invoke, tmp_path):
    output = tmp_path / "made" / "schema.json"
    result = invoke("schema", "--output", str(output))
    assert (result.exit_code, result.stdout) == (0, "")
    assert output.read_text() == export_schema()
    assert json.loads(output.read_text())["title"] == "Pipeline"


@pytest.mark.parametrize(("content", "told"), [(None, "cannot be read"), ("{}", "is not the Avro")])
def test_a_schema_file_is_looked_at(invoke, add_spec, deployment, content, told):
    value = "{format: avro, schema_file: order.avsc}"
    source = f"{{type: kafka, topics: [t], max_offsets_per_trigger: 5, value: {value}}}"
    add_spec("orders", source=source)
    if content:
        (deployment.pipelines / "order.avsc").write_text(content)
    result = invoke("validate")
    assert result.exit_code == 1
    assert "source.value.schema_file (line 2): " in result.stdout
    assert told in result.stdout


def test_a_step_that_does_not_import_is_told_beside_other_mistakes(invoke, add_spec):
    add_spec("orders", "transform: {python: nowhere:f}", "retries: many")
    told = invoke("validate").stdout
    assert "orders.yaml has 2 mistakes" in told
    assert "retries (line 5): must be a whole number" in told
    assert "transform[0].python (line 4): " in told
