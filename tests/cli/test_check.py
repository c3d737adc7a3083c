"""`tidegate check`: the exit code, the table and the JSON."""

import json

import pytest

from tidegate.core.errors import SettingsError
from tidegate.core.ledger import Ledger
from tidegate.core.shape import Shape
from tidegate.core.spec.loader import load_pipeline


@pytest.fixture
def deploy(deployment, checkpoint_of):
    """Let a pipeline have run as its spec is now."""

    def lay(name, position):
        checkpoint_of(name).metadata().batch(0, position)
        pipeline = load_pipeline(deployment.pipelines, name).require()
        Ledger.beside(deployment.state_of(name)).record_shape(
            Shape.of(pipeline, deployment.pipelines)
        )

    return lay


def test_all_that_can_be_deployed_ends_with_0(invoke, add_files_spec, add_spec, deploy):
    add_files_spec("orders")
    add_spec("ticks")
    deploy("orders", {"logOffset": 0})
    result = invoke("check")
    assert result.exit_code == 0
    assert "compatible" in result.stdout
    assert "new" in result.stdout


def test_what_cannot_ends_with_1_and_says_what_to_do(invoke, add_files_spec, add_spec, deploy):
    add_files_spec("orders")
    deploy("orders", {"logOffset": 0})
    add_spec("orders")  # a rate source now
    result = invoke("check", "orders")
    assert result.exit_code == 1
    assert "fresh" in result.stdout
    assert "new name" in result.stdout


def test_json_has_all_that_was_found(invoke, add_files_spec, add_spec, deploy):
    add_files_spec("orders")
    deploy("orders", {"logOffset": 0})
    add_spec("orders")
    add_spec("broken", text="name: broken\nsource: {type: nothing}\n")
    told = json.loads(invoke("check", "--json").stdout)
    assert told["compatible"] is False
    by_name = {each["pipeline"]: each for each in told["pipelines"]}
    assert by_name["orders"]["verdict"] == "fresh"
    assert by_name["broken"]["differences"][0]["code"] == "spec_broken"
    for difference in by_name["orders"]["differences"]:
        assert set(difference) == {"code", "verdict", "message", "remedy"}


def test_the_state_of_another_deployment_can_be_named(
    invoke, deployment, add_files_spec, deploy, tmp_path
):
    add_files_spec("orders")
    deploy("orders", {"logOffset": 0})
    elsewhere = json.loads(invoke("check", "--json", "--against", str(tmp_path / "no")).stdout)
    assert elsewhere["pipelines"][0]["verdict"] == "new"
    here = json.loads(invoke("check", "--json", "--against", deployment.state).stdout)
    assert here["pipelines"][0]["verdict"] == "compatible"


def test_a_driver_is_asked_only_where_steps_changed(invoke, deployment, add_files_spec, deploy):
    add_files_spec("orders")
    deploy("orders", {"logOffset": 0})
    assert invoke("check").exit_code == 0  # there is no JAR, so a driver would be refused
    file = deployment.pipelines / "orders.yaml"
    file.write_text(f"{file.read_text()}\ntransform: {{sql: SELECT DISTINCT * FROM input}}\n")
    assert isinstance(invoke("check").exception, SettingsError)
