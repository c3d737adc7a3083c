"""Deployments of specs and aged tables, without a JVM."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.delta_table import DeltaTableBuilder
from tidegate.core.maintenance.plan import Planner
from tidegate.core.maintenance.step import TablePlan

BRONZE = {"type": "delta", "table": "bronze"}
READS_BRONZE = {"type": "delta", "table": "bronze", "max_files_per_trigger": 10}
RATE = {"type": "rate", "rows_per_batch": 1}


@pytest.fixture
def write_spec(settings) -> Callable[..., None]:
    """Write a spec: by default one that writes the table bronze."""
    settings.pipelines.mkdir(parents=True, exist_ok=True)

    def write(name: str = "writer", **parts) -> None:
        spec = {"name": name, "source": RATE, "sinks": [BRONZE]} | parts
        (settings.pipelines / f"{name}.yaml").write_text(json.dumps(spec))  # JSON is YAML

    return write


@pytest.fixture
def write_reader(write_spec) -> Callable[..., None]:
    """Write the spec of a pipeline that reads the table bronze."""

    def write(name: str = "reader", **source) -> None:
        sinks = [{"type": "delta", "table": f"out/{name}"}]
        write_spec(name, source=READS_BRONZE | source, sinks=sinks)

    return write


@pytest.fixture
def bronze(settings) -> DeltaTableBuilder:
    """The table bronze, yet to be written."""
    return DeltaTableBuilder(Path(settings.data) / "bronze")


@pytest.fixture
def aged(bronze) -> DeltaTableBuilder:
    """The table bronze: three appends of 20 days ago, and an OPTIMIZE of 10 days ago."""
    bronze.append().append().append().optimize()
    for version, days in enumerate((22, 21, 20, 10)):
        bronze.age(version, timedelta(days=days))
    return bronze


@pytest.fixture
def plan_table(settings) -> Callable[..., TablePlan]:
    """Plan what there is to do for a table."""

    def plan(table: str = "bronze", pipeline: str = "writer") -> TablePlan:
        (planned,) = Planner.load(settings).plan(pipeline)
        return next(found for found in planned.tables if found.table.name == table)

    return plan
