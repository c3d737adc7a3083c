"""The DAG that looks at all pipelines, and tells what is beyond their rules."""

from pathlib import Path

from tidegate.airflow import build_alerts_dag

alerts = build_alerts_dag(Path(__file__).resolve().parents[1])
