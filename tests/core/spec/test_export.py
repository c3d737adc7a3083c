import json

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from tidegate.core.spec.export import export_schema


@pytest.fixture(scope="module")
def validator():
    """The exported schema, ready to check with."""
    return Draft202012Validator(json.loads(export_schema()))


@pytest.fixture
def mistakes_in(validator):
    """Check a spec's text against the schema, and return where it is wrong."""
    return lambda text: [
        error.json_path for error in validator.iter_errors(YAML(typ="safe", pure=True).load(text))
    ]


def test_the_schema_beside_the_specs_is_current(demo_folder):
    assert (demo_folder / "schema.json").read_text(encoding="utf-8") == export_schema()


def test_the_schema_is_a_schema(validator):
    Draft202012Validator.check_schema(validator.schema)
    assert validator.schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]


@pytest.mark.parametrize("name", ["orders_bronze", "orders_silver", "orders_gold"])
def test_a_demo_spec_validates(demo_folder, mistakes_in, name):
    assert mistakes_in((demo_folder / f"{name}.yaml").read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "lines",
    [
        ["transform: {sql: SELECT 1}"],
        ["transform: [{sql: SELECT 1}, {python: 'm:f'}]"],
        ["spark: {spark.x: 5, spark.y: true, spark.z: text}"],
        ["tables: {t: {type: delta, table: x}}"],
        ["schedule: '@daily'", "retries: 0", "retry_delay: 5m"],
    ],
)
def test_what_the_loader_takes_validates(write, parse, mistakes_in, lines):
    text = write(*lines)
    assert parse(text).name == "orders"
    assert mistakes_in(text) == []


@pytest.mark.parametrize(
    ("lines", "path"),
    [
        (["nope: 1"], "$"),
        (["owner: 5"], "$.owner"),
        (["retries: -1"], "$.retries"),
        (["retry_delay: soon"], "$.retry_delay"),
        (["after: [../x]"], "$.after[0]"),
        (["tags: gold"], "$.tags"),
        (["tables: {t: {type: kafka}}"], "$.tables.t"),
        (["tables: {Bad Name: {type: delta, table: x}}"], "$.tables"),
        (["transform: [{spl: x}]"], "$.transform"),
        (["spark: {x: [1]}"], "$.spark.x"),
    ],
)
def test_a_wrong_spec_does_not_validate(write, problems_of, mistakes_in, lines, path):
    text = write(*lines)
    assert problems_of(text)
    assert mistakes_in(text) == [path]


@pytest.mark.parametrize(
    "text",
    [
        "name: a\n",
        "{}",
        "[]",
        "name: a\nsource: {type: rate, rows_per_batch: 5}\nsinks: []\n",
        "name: a\nsource: {type: rate}\nsinks: [{type: delta, table: x}]\n",
        "name: ../x\nsource: {type: rate, rows_per_batch: 1}\nsinks: [{type: delta, table: x}]\n",
    ],
)
def test_a_spec_that_is_not_whole_does_not_validate(mistakes_in, text):
    assert mistakes_in(text)


def test_every_default_validates_against_its_own_field(validator):
    definitions = {"": validator.schema} | validator.schema["$defs"]
    wrong = [
        f"{name}.{field}"
        for name, definition in definitions.items()
        for field, schema in definition.get("properties", {}).items()
        if "default" in schema
        and not validator.evolve(schema={**schema, "$defs": validator.schema["$defs"]}).is_valid(
            schema["default"]
        )
    ]
    assert wrong == []


def test_every_field_of_a_spec_is_in_the_schema_by_the_name_it_has_there(validator):
    files = validator.schema["$defs"]["FilesSource"]["properties"]
    assert "schema" in files
    assert "file_schema" not in files
