"""The page in Airflow's UI: a plugin, the API behind it, and the bundle that the browser loads."""

from tidegate.airflow.plugin.plugin import build_plugin

__all__ = ["build_plugin"]
