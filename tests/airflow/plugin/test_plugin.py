"""What Airflow is told of, and what a task pays for it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_is_in_the_navigation_and_in_each_dag(viewer):
    plugins = viewer.get("/api/v2/plugins").json()["plugins"]
    [plugin] = [plugin for plugin in plugins if plugin["name"] == "tidegate"]
    pages = {app["destination"]: app["url_route"] for app in plugin["react_apps"]}
    assert pages == {"nav": "tidegate", "dag": "tidegate_pipeline"}
    bundles = {app["bundle_url"] for app in plugin["react_apps"]}
    [bundle] = bundles
    answer = viewer.get(bundle)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "no-cache"


def test_a_task_that_loads_the_plugin_does_not_load_the_api():
    code = (
        "import sys, runpy; runpy.run_path('plugins/tidegate_plugin.py'); "
        "print([name for name in ('fastapi', 'prometheus_client', 'tidegate.airflow.plugin.app') "
        "if name in sys.modules])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "tidegate.airflow.plugin.app" not in loaded.stdout
    assert "prometheus_client" not in loaded.stdout
