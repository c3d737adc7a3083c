"""`tidegate backfill`: what it shows before it does anything, and what it refuses."""

import json

import pytest

from tidegate.core.errors import BackfillError, SettingsError


@pytest.fixture
def orders(deployment, add_files_spec, checkpoint_of):
    """A pipeline that has read three files."""
    add_files_spec("orders")
    landing = deployment.locate("landing")
    landing.mkdir(parents=True)
    paths = [landing / f"{number}.txt" for number in range(3)]
    for path in paths:
        path.write_text("x")
    checkpoint_of("orders").log_files(0, *map(str, paths)).batch(0)
    return deployment


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(invoke, orders):
    result = invoke(
        *("backfill", "orders", "--mode", "replace", "--glob", "*.txt", "--slices", "2"),
        "--dry-run",
    )
    assert result.exit_code == 0
    assert "replace 3 files, in 2 slices" in result.stdout
    assert "out/orders has 0 rows of the range, to be swapped" in result.stdout
    assert not (orders.state_of("orders") / "backfills").exists()


def test_all_mistakes_are_told_at_once(invoke, orders):
    assert orders
    error = invoke("backfill", "orders", "--mode", "merge", "--first-version", "3").exception
    assert isinstance(error, BackfillError)
    assert "first_version: is for a source of type delta" in str(error)
    assert "it does not know rows by keys" in str(error)


def test_one_that_is_not_there_is_not_gone_on_with(invoke, orders):
    assert orders
    error = invoke("backfill", "orders", "--resume", "../x").exception
    assert isinstance(error, BackfillError)
    assert "orders has no backfill '../x'; it has none" in str(error)


def test_it_is_begun_only_where_a_driver_can_be(invoke, orders):
    error = invoke("backfill", "orders", "--mode", "replace", "--glob", "*.txt").exception
    assert isinstance(error, SettingsError)
    assert not (orders.state_of("orders") / "backfills").exists()


def test_it_names_the_readers_of_a_table_that_a_swap_would_stop(invoke, orders):
    def write(name, **source):
        given = {"type": "delta", "table": "out/orders", "max_files_per_trigger": 1} | source
        spec = {"name": name, "source": given, "sinks": [{"type": "delta", "table": f"out/{name}"}]}
        (orders.pipelines / f"{name}.yaml").write_text(json.dumps(spec))

    write("strict")
    write("lenient", skip_change_commits=True)
    told = invoke("backfill", "orders", "--mode", "replace", "--glob", "*.txt", "--dry-run").stdout
    assert "strict reads out/orders and stops at a version that changes rows" in told
    assert "lenient" not in told


def test_a_resumed_one_takes_nothing_else(invoke, orders):
    assert orders
    for more in ("--dry-run", "--glob=*"):
        error = invoke("backfill", "orders", "--resume", "backfill__x", more).exception
        assert isinstance(error, BackfillError)
        assert "takes --resume, or what is to be done" in str(error)
