"""One whole Airflow for all tests that use the demo's pipelines."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.e2e.home import Home

WATCHER = '''
"""Waits for the second batch of bronze, and follows its commits, as DAGs of somebody else would."""

from airflow.sdk import DAG, Asset

from tidegate.airflow import CheckpointSensor, commit_watcher

with DAG("watcher", schedule=None):
    CheckpointSensor(
        task_id="wait", checkpoint="{checkpoint}", batch_at_least=1, poke_interval=1
    )

commits = Asset(
    "commits", watchers=[commit_watcher("commits", "{checkpoint}", poll_seconds=1)]
)
with DAG("follower", schedule=[commits]):
    CheckpointSensor(task_id="look", checkpoint="{checkpoint}", batch_at_least=0)
'''
RETURNS = """
name: returns
source:
  type: files
  path: landing/returns
  format: json
  schema: "id long, n long"
  max_files_per_trigger: 10
sinks:
  - {type: delta, table: bronze/returns}
"""


@pytest.fixture(scope="session")
def home(tmp_path_factory) -> Iterator[Home]:
    """The demo, and a pipeline beside it that nothing depends on."""
    home = Home(tmp_path_factory.mktemp("home"))
    checkpoint = home.folder / "var/state/orders_bronze/checkpoint"
    (home.folder / "dags" / "watcher.py").write_text(WATCHER.format(checkpoint=checkpoint))
    (home.folder / "pipelines" / "returns.yaml").write_text(RETURNS)
    try:
        home.run("demo.up")
        yield home
    finally:
        home.run("demo.down")


@pytest.fixture(scope="session")
def url(home) -> str:
    """Where that Airflow is."""
    return json.loads((home.folder / "var/airflow/stack.json").read_text())["url"]


@pytest.fixture(scope="session")
def api(url) -> Iterator[httpx.Client]:
    """The REST API of that Airflow."""
    with httpx.Client(base_url=f"{url}/api/v2", timeout=30) as client:
        yield client
