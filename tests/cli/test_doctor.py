"""`tidegate checkpoint doctor`: the exit code, the table and the JSON."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tidegate.core.errors import NotACheckpointError, SpecError


@pytest.fixture
def doctor(invoke):
    """Ask the doctor."""
    return lambda *arguments: invoke("checkpoint", "doctor", *map(str, arguments))


@pytest.fixture
def orders(deployment, add_files_spec):
    """A pipeline whose landing zone is empty."""
    add_files_spec("orders")
    deployment.locate("landing").mkdir(parents=True)
    return deployment


@pytest.fixture
def checkpoint(orders, checkpoint_of):
    """Its checkpoint, yet to be written."""
    return checkpoint_of("orders")


@pytest.fixture
def sink(orders, table_at):
    """The table that it writes to, before anything is written."""
    return table_at(orders.locate("out/orders"))


def test_a_healthy_checkpoint_ends_with_0(local_checkpoint, doctor):
    result = doctor(local_checkpoint.batches(3).path)
    assert (result.exit_code, result.stdout.strip().endswith("is healthy.")) == (0, True)


def test_an_error_ends_with_1_and_says_what_to_do(local_checkpoint, doctor):
    result = doctor(local_checkpoint.batches(3).delete("offsets/2").path)
    assert result.exit_code == 1
    assert "commit_ahead" in result.stdout
    assert "Do not restart" in result.stdout


def test_json_has_all_that_was_found(local_checkpoint, doctor):
    local_checkpoint.batches(3).delete("offsets/2").delete("commits/0")
    result = doctor(local_checkpoint.path, "--json")
    told = json.loads(result.stdout)
    assert (result.exit_code, told["healthy"]) == (1, False)
    assert [finding["code"] for finding in told["findings"]] == ["commit_ahead", "commits_gap"]
    for finding in told["findings"]:
        assert set(finding) == {"code", "severity", "file", "message", "remedy"}
        assert finding["severity"] in {"error", "warning", "info"}


def test_information_alone_is_healthy(local_checkpoint, doctor):
    result = doctor(local_checkpoint.batches(3).delete("commits/0").path, "--json")
    assert (result.exit_code, json.loads(result.stdout)["healthy"]) == (0, True)


@pytest.mark.parametrize("exists", [True, False])
def test_what_is_no_checkpoint_is_told(tmp_path, exists, doctor):
    if exists:
        (tmp_path / "checkpoint").mkdir()
    result = doctor(tmp_path / "checkpoint")
    assert isinstance(result.exception, NotACheckpointError)


class TestPipeline:
    def test_a_name_that_is_not_known_is_told(self, orders, doctor):
        assert orders
        assert isinstance(doctor("order").exception, SpecError)

    def test_one_that_never_ran_has_no_checkpoint(self, orders, doctor):
        assert orders
        result = doctor("orders")
        assert isinstance(result.exception, NotACheckpointError)
        assert "Run the pipeline first" in str(result.exception)

    def test_a_sink_that_is_ahead_is_told(self, checkpoint, sink, doctor):
        checkpoint.batches(2)
        sink.append(app_id=f"{checkpoint.query_id}:main", batch=7)
        found = _find(doctor("orders", "--json"), "sink_ahead")
        assert "holds batch 7 of this query" in found["message"]

    def test_a_sink_that_is_gone_is_told(self, checkpoint, doctor):
        checkpoint.batches(2)
        found = _find(doctor("orders", "--json"), "sink_replaced")
        assert "holds no batch of this query" in found["message"]

    def test_logs_that_were_deleted_while_the_sink_has_rows_are_told(
        self, checkpoint, sink, doctor
    ):
        checkpoint.metadata()
        sink.append(app_id=f"{checkpoint.query_id}:main", batch=3)
        found = _find(doctor("orders", "--json"), "sink_ahead")
        assert "the next ones would be skipped" in found["message"]

    def test_a_source_of_another_kind_is_told(self, checkpoint, sink, doctor):
        checkpoint.batch(0, {"orders": {"0": 5}})
        sink.append(app_id=f"{checkpoint.query_id}:main")
        assert _find(doctor("orders", "--json"), "sources_changed")["severity"] == "error"

    def test_a_landing_zone_that_is_gone_is_told(self, orders, checkpoint, sink, doctor):
        checkpoint.batches(1)
        sink.append(app_id=f"{checkpoint.query_id}:main")
        orders.locate("landing").rmdir()
        assert _find(doctor("orders", "--json"), "not_readable")["severity"] == "error"

    def test_one_in_which_all_agrees_is_healthy(self, checkpoint, sink, doctor):
        checkpoint.batches(1)
        sink.append(app_id=f"{checkpoint.query_id}:main")
        result = doctor("orders", "--json")
        assert (result.exit_code, json.loads(result.stdout)["findings"]) == (0, [])

    @pytest.mark.parametrize(
        ("days", "is_gone", "code", "severity"),
        [
            (1, False, None, None),
            (29, False, "retention_risk", "warning"),
            (40, False, "retention_risk", "warning"),
            (40, True, "log_expired", "error"),
        ],
    )
    def test_versions_that_a_source_may_lose_are_told(
        self, deployment, add_spec, checkpoint_of, table_at, doctor, days, is_gone, code, severity
    ):
        add_spec("silver", source="{type: delta, table: bronze, max_files_per_trigger: 1}")
        bronze = table_at(deployment.locate("bronze")).append().append().append()
        bronze.date(1, datetime.now(UTC) - timedelta(days=days))
        checkpoint = checkpoint_of("silver")
        position = checkpoint.delta(1) | {"reservoirId": bronze.id}
        checkpoint.metadata().batch(0, position)
        table_at(deployment.locate("out/silver")).append(app_id=f"{checkpoint.query_id}:main")
        if is_gone:
            for version in (0, 1):
                (bronze.log / f"{version:020}.json").rename(bronze.log / f"old-{version}")
            bronze.checksum(2, metadata={"id": position["reservoirId"]})
        result = doctor("silver", "--json")
        found = json.loads(result.stdout)["findings"]
        assert [(one["code"], one["severity"]) for one in found] == (
            [(code, severity)] if code else []
        )
        assert result.exit_code == (1 if severity == "error" else 0)


def _find(result, code):
    (found,) = [one for one in json.loads(result.stdout)["findings"] if one["code"] == code]
    return found
