"""The DAGs that a person starts: a range of a source once more, and what was put aside."""

from pathlib import Path

from tidegate.airflow import build_backfill_dag, build_replay_dag

HOME = Path(__file__).resolve().parents[1]

backfill = build_backfill_dag(HOME)
replay = build_replay_dag(HOME)
