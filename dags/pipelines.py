"""One Airflow DAG for every spec in pipelines/."""

from pathlib import Path

from tidegate.airflow import build_dags

globals().update(build_dags(Path(__file__).resolve().parents[1]))
