"""What Airflow is told of: a FastAPI app, and the page for the navigation and for each DAG."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from tidegate.airflow.page import PAGE, TAB

PREFIX = "/tidegate"
_BUNDLE = f"{PREFIX}/static/main.js"


def build_plugin(home: Path) -> type[AirflowPlugin]:
    """Build the plugin of a deployment."""

    class TidegatePlugin(AirflowPlugin):
        """Tidegate in Airflow's UI."""

        name = "tidegate"
        # Both have one name, as the page is one component: within a DAG it shows that DAG's pipeline.
        react_apps: list[Any] = [  # noqa: RUF012
            _describe_page("nav", PAGE),
            _describe_page("dag", TAB),
        ]

        @cached_property
        def fastapi_apps(self) -> list[Any]:  # type: ignore[override]
            """The API; loaded by the API server alone, while every task loads the plugin."""
            from tidegate.airflow.plugin.app import build_app

            return [{"name": "tidegate", "app": build_app(home), "url_prefix": PREFIX}]

    return TidegatePlugin


def _describe_page(destination: str, route: str) -> dict[str, Any]:
    return {
        "name": "Tidegate",
        "bundle_url": _BUNDLE,
        "destination": destination,
        "url_route": route,
        "nav_top_level": True,
    }
