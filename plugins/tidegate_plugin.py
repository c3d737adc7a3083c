"""Tidegate's page in Airflow's UI, and the API behind it."""

from pathlib import Path

from tidegate.airflow.plugin import build_plugin

TidegatePlugin = build_plugin(Path(__file__).resolve().parents[1])
