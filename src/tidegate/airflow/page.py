"""Where the page is in Airflow's UI."""

from __future__ import annotations

from urllib.parse import urlsplit

from airflow.configuration import conf

PAGE = "tidegate"
"""Its route below /plugin/; a pipeline's is below that."""
TAB = "tidegate_pipeline"
"""The route of the tab below a DAG's own."""


def locate_page(pipeline: str) -> str:
    """Find the page of a pipeline, in an Airflow that may be served below a path."""
    base = urlsplit(conf.get("api", "base_url", fallback=None) or "").path.rstrip("/")
    return f"{base}/plugin/{PAGE}/{pipeline}"
