"""Specs as text, and what the loader says about them."""

from pathlib import Path

import pytest

from tidegate.core.errors import SpecError
from tidegate.core.spec.loader import parse_pipeline

FILES = {
    "type": "files",
    "path": "landing",
    "format": "json",
    "schema": "id long",
    "max_files_per_trigger": "5",
}
DELTA = {"type": "delta", "table": "bronze", "max_files_per_trigger": "5"}


@pytest.fixture(scope="session")
def demo_folder():
    """The specs that the repository ships."""
    return Path(__file__).parents[3] / "pipelines"


@pytest.fixture
def write():
    """Write a spec: name is line 1, source line 2, sinks line 3, further lines from line 4 on."""

    def write_text(
        *lines,
        name="orders",
        source="source: {type: rate, rows_per_batch: 5}",
        sinks="[{type: delta, table: out}]",
    ):
        return "\n".join((f"name: {name}", source, f"sinks: {sinks}", *lines)) + "\n"

    return write_text


@pytest.fixture
def write_files(write):
    """Write a spec with a files source in block style; a field given as None is left out."""
    return lambda **fields: write(source=_write_block("source", FILES | fields))


@pytest.fixture
def write_delta(write):
    """Write a spec with a Delta source in block style; a field given as None is left out."""
    return lambda **fields: write(source=_write_block("source", DELTA | fields))


@pytest.fixture
def write_sink(write):
    """Write a spec with a Delta sink in flow style, further fields given as YAML."""
    return lambda fields: write(sinks=f"[{{type: delta, {fields}}}]")


@pytest.fixture
def parse():
    """Parse a spec's text with only the given variables set."""
    return lambda text, **variables: parse_pipeline(text, "orders.yaml", variables)


@pytest.fixture
def problems_of(parse):
    """Parse a spec's text that is wrong, and return what is told."""

    def find(text, **variables):
        with pytest.raises(SpecError) as raised:
            parse(text, **variables)
        return list(raised.value.problems)

    return find


@pytest.fixture
def problem_of(problems_of):
    """Parse a spec's text that has exactly one mistake, and return what is told."""

    def find(text, **variables):
        (problem,) = problems_of(text, **variables)
        return problem

    return find


def _write_block(key, fields):
    return f"{key}:" + "".join(
        f"\n  {name}: {value}" for name, value in fields.items() if value is not None
    )
