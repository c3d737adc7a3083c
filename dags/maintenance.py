"""The DAG that tidies up tables and state."""

from pathlib import Path

from tidegate.airflow import build_maintenance_dag

maintenance = build_maintenance_dag(Path(__file__).resolve().parents[1])
