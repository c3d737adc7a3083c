"""The command, run within the test or as a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidegate.cli.app import app


@pytest.fixture(scope="session")
def demo_folder():
    """The specs that the repository ships."""
    return Path(__file__).parents[2] / "pipelines"


@pytest.fixture
def deployment(settings, monkeypatch):
    """A deployment without specs that the environment points at."""
    for variable, value in settings.to_environment().items():
        monkeypatch.setenv(variable, value)
    monkeypatch.delenv("TIDEGATE_MASTER", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    settings.pipelines.mkdir()
    return settings


@pytest.fixture
def add_spec(deployment):
    """Write a spec of a rate source, or any text, into the deployment."""

    def add(name, *lines, source="{type: rate, rows_per_batch: 5}", text=None):
        whole = [
            f"name: {name}",
            f"source: {source}",
            f"sinks: [{{type: delta, table: out/{name}}}]",
            *lines,
        ]
        file = deployment.pipelines / f"{name}.yaml"
        file.write_text("\n".join(whole) + "\n" if text is None else text)
        return file

    return add


@pytest.fixture
def add_files_spec(add_spec):
    """Write a spec of a files source into the deployment."""
    return lambda name: add_spec(
        name, source="{type: files, path: landing, format: text, max_files_per_trigger: 5}"
    )


@pytest.fixture
def add_module(deployment):
    """Write a module of transforms into the deployment."""
    return lambda name, code: (deployment.pipelines / f"{name}.py").write_text(code)


@pytest.fixture
def invoke(deployment):
    """Run the command within the test; an error of ours is the result's exception."""
    return lambda *arguments: CliRunner().invoke(app, arguments)


@pytest.fixture
def call(deployment):
    """Run the command as a process of its own, as a person does."""
    command = Path(sys.executable).with_name("tidegate")
    return lambda *arguments: subprocess.run(
        [command, *arguments], check=False, capture_output=True, text=True, cwd=deployment.home
    )
