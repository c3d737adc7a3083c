"""`tidegate alerts`: what is beyond its rules, without telling anybody."""

import json
from datetime import UTC, datetime

import pytest

from tidegate.core.alerts.incident import Incidents
from tidegate.core.alerts.watch import Watch
from tidegate.core.ledger import Decision, Ledger, Plan
from tidegate.core.spec.loader import load_specs


@pytest.fixture
def block(deployment):
    def record(name):
        reason = "The landing zone does not exist."
        plan = Plan("run 1", Decision.BLOCKED, reason, "2026-06-01T12:00:00+00:00")
        Ledger.beside(deployment.state_of(name)).open_run(plan)

    return record


def test_where_all_is_well_the_command_says_so(add_spec, invoke):
    add_spec("one")
    add_spec("two")
    result = invoke("alerts")
    assert (result.exit_code, result.stdout) == (0, "2 pipelines, nothing beyond the rules.\n")


def test_what_is_beyond_a_rule_is_shown_and_nobody_is_told(
    add_spec, invoke, block, monkeypatch, deployment
):
    monkeypatch.setenv("TIDEGATE_NOTIFY", "[{type: smtp, to: [ops@example.com]}]")
    add_spec("bad")
    add_spec("well")
    block("bad")
    result = invoke("alerts")
    assert result.exit_code == 1
    for told in ("failed_run", "new", "smtp ops@example.com", "landing zone does not exist"):
        assert told in result.stdout
    assert not (deployment.state_of("bad") / "alerts").exists()
    assert invoke("alerts", "well").exit_code == 0
    (row,) = json.loads(invoke("alerts", "--json").stdout)
    assert (row["pipeline"], row["rule"], row["state"]) == ("bad", "failed_run", "new")


def test_an_incident_that_is_open_is_shown_with_its_beginning(add_spec, invoke, block, deployment):
    add_spec("bad")
    block("bad")
    watch = Watch(deployment)
    (seen,) = watch.look(load_specs(deployment.pipelines))
    watch.settle(seen, lambda *_: None)
    (row,) = json.loads(invoke("alerts", "bad", "--json").stdout)
    opened = Incidents.beside(deployment.state_of("bad")).list_open()[0].opened_at
    assert (row["since"], row["state"]) == (opened, "open")


def test_what_cannot_be_judged_is_told(add_files_spec, invoke, deployment, checkpoint_of):
    add_files_spec("files")
    at = datetime(2026, 1, 1, tzinfo=UTC).isoformat()
    plan = Plan("run 1", Decision.IDLE, "no new files", at)
    Ledger.beside(deployment.state_of("files")).open_run(plan)
    result = invoke("alerts")
    assert result.exit_code == 0
    assert "lag_time" in result.stderr
    assert "does not exist" in result.stderr


def test_a_name_that_no_pipeline_has_is_told(add_spec, call):
    add_spec("one")
    result = call("alerts", "two")
    assert result.returncode == 1
    assert "there is no pipeline 'two'" in result.stderr
