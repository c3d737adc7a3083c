"""An Airflow database of the tests' own, set up before Airflow is imported."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Airflow reads its configuration when it is imported, so this cannot wait for a fixture.
_HOME = tempfile.mkdtemp(prefix="tidegate-airflow-")
os.environ.update(
    {
        "AIRFLOW_HOME": _HOME,
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__API_AUTH__JWT_SECRET": "a secret for tests alone " * 4,
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]"}',
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PATH": f"{Path(os.sys.executable).parent}:{os.environ['PATH']}",
    }
)

import shutil  # noqa: E402

import pytest  # noqa: E402


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.airflow)


@pytest.fixture(scope="session")
def database() -> Iterator[None]:
    from airflow.utils.db import initdb

    initdb()
    yield
    shutil.rmtree(_HOME, ignore_errors=True)


@pytest.fixture
def deployment(settings, monkeypatch) -> Path:
    """A deployment below a temporary folder; returns the folder of its specs."""
    for key, value in settings.to_environment().items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("TIDEGATE_HOME", str(ROOT))
    monkeypatch.setenv("TIDEGATE_JARS", str(ROOT / "jars"))
    settings.pipelines.mkdir(parents=True, exist_ok=True)
    return settings.pipelines


@pytest.fixture
def write_spec(deployment) -> Callable[..., None]:
    """Write a spec that reads files from the landing zone."""
    import json

    def write(name: str = "p", **parts) -> None:
        spec = {
            "name": name,
            "source": {
                "type": "files",
                "path": "landing",
                "format": "json",
                "schema": "id long",
                "max_files_per_trigger": 1,
            },
            "sinks": [{"type": "delta", "table": f"out/{name}"}],
        }
        (deployment / f"{name}.yaml").write_text(json.dumps(spec | parts))  # JSON is YAML

    return write


@pytest.fixture
def dag_bag(database):
    """Load the repository's own DAG files."""

    def load():
        from airflow.dag_processing.dagbag import DagBag

        return DagBag(str(ROOT / "dags"), load_op_links=False)

    return load
