"""What `make example` says when it cannot run what it is asked for; no JVM starts."""

import json
from pathlib import Path

import pytest

from demo import example
from demo.sample import list_examples

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def call(settings, monkeypatch, capsys):
    """Call the command on the shipped specs, and return its exit code and what it printed."""
    places = settings.to_environment() | {"TIDEGATE_PIPELINES": str(ROOT / "pipelines")}
    for variable, value in places.items():
        monkeypatch.setenv(variable, value)
    for variable in ("TIDEGATE_CONN_WAREHOUSE", "AIRFLOW_CONN_WAREHOUSE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("COLUMNS", "1000")

    def run(*arguments):
        code = example.main(list(arguments))
        return code, capsys.readouterr().out

    return run


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "Which example?"),
        (["nope"], "There is no example 'nope'."),
        (["orders_bronze"], "There is no example 'orders_bronze'."),
        (["word_count", "fraud_alerts"], "There is no example 'word_count fraud_alerts'."),
    ],
)
def test_a_name_that_is_none_is_told_with_all_that_are(call, arguments, told):
    names = ", ".join(list_examples())
    assert call(*arguments) == (1, f"{told} Say make example NAME=… with one of {names}.\n")


def test_a_missing_connection_is_told_before_anything_lands(call, settings):
    code, output = call("fraud_alerts")
    assert code == 1
    assert output.startswith(
        "fraud_alerts writes to PostgreSQL. There is no connection 'warehouse'."
    )
    assert "set TIDEGATE_CONN_WAREHOUSE='…' to its options as JSON" in output
    assert output.endswith("See type: jdbc in docs/specs.md.\n")
    assert not settings.locate("landing").exists()


def test_a_connection_that_is_none_of_a_database_is_told(call, monkeypatch):
    monkeypatch.setenv("TIDEGATE_CONN_WAREHOUSE", json.dumps({"host": "127.0.0.1"}))
    code, output = call("fraud_alerts")
    assert (code, "dbname is missing" in output) == (1, True)


def test_what_keeps_a_run_from_starting_is_told(call, settings):
    code, output = call("word_count")
    assert code == 1
    assert f"There is no Delta JAR in {settings.jars}. Run 'make jars'" in output
    assert len(list((settings.locate("landing/word_count")).iterdir())) == 3
