"""Airflow's side: the DAGs, the operators, and the sensor that stands on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.airflow.alerts import build_alerts_dag
    from tidegate.airflow.asset import pipeline_asset
    from tidegate.airflow.backfill.dag import build_backfill_dag
    from tidegate.airflow.factory import build_dags, raise_spec_errors
    from tidegate.airflow.maintenance.dag import build_maintenance_dag
    from tidegate.airflow.replay import build_replay_dag
    from tidegate.airflow.sensor import CheckpointSensor
    from tidegate.airflow.watcher import commit_watcher

__all__ = [
    "CheckpointSensor",
    "build_alerts_dag",
    "build_backfill_dag",
    "build_dags",
    "build_maintenance_dag",
    "build_replay_dag",
    "commit_watcher",
    "pipeline_asset",
    "raise_spec_errors",
]

_HOMES = {
    "CheckpointSensor": "tidegate.airflow.sensor",
    "build_alerts_dag": "tidegate.airflow.alerts",
    "build_backfill_dag": "tidegate.airflow.backfill.dag",
    "build_dags": "tidegate.airflow.factory",
    "build_maintenance_dag": "tidegate.airflow.maintenance.dag",
    "build_replay_dag": "tidegate.airflow.replay",
    "commit_watcher": "tidegate.airflow.watcher",
    "pipeline_asset": "tidegate.airflow.asset",
    "raise_spec_errors": "tidegate.airflow.factory",
}


def __getattr__(name: str) -> Any:
    # Lazily: the triggerer loads only the trigger, and pays for nothing else.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
