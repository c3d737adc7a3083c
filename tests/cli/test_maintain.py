"""`tidegate maintain`, up to where a JVM would start."""

from pathlib import Path

import pytest

from tests.delta_table import DeltaTableBuilder
from tidegate.core.errors import SettingsError


@pytest.fixture
def tables(deployment, add_spec):
    """Two tables, one of them with three small files."""
    for name, appends in (("one", 3), ("two", 1)):
        add_spec(name, "maintenance: {min_small_files: 2}")
        table = DeltaTableBuilder(Path(deployment.data) / "out" / name)
        for _ in range(appends):
            table.append()
    return deployment


@pytest.mark.usefixtures("tables")
def test_a_dry_run_says_what_would_be_done_and_why(invoke):
    result = invoke("maintain", "--dry-run")
    assert result.exit_code == 0
    idle = "1 of 1 files are small; no files were taken away more than 7 days ago"
    assert result.stdout.splitlines() == [
        "one: out/one: optimize: 3 of 3 files are small, and 2 can be spared",
        f"two: out/two: nothing to do: {idle}",
        "one: nothing to clear away",
        "two: nothing to clear away",
        "Nothing was done.",
    ]


@pytest.mark.usefixtures("tables")
def test_where_there_is_nothing_to_do_nothing_is_started(invoke):
    result = invoke("maintain", "two")
    assert result.exit_code == 0
    assert "one" not in result.stdout


@pytest.mark.usefixtures("tables")
def test_a_driver_is_started_only_where_it_can_be(invoke):
    error = invoke("maintain").exception
    assert isinstance(error, SettingsError)
    assert "make jars" in str(error)
