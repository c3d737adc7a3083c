"""Shows specs with mistakes as an import error in Airflow; the other DAGs load all the same."""

from pathlib import Path

from tidegate.airflow import raise_spec_errors

raise_spec_errors(Path(__file__).resolve().parents[1])
