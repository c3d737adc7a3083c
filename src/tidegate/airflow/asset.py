"""The asset that stands for what a pipeline has committed."""

from __future__ import annotations

from airflow.sdk import Asset

from tidegate.core.spec.pipeline import Pipeline


def pipeline_asset(name: str) -> Asset:
    """Return a pipeline's asset: schedule a DAG by it to run after each commit."""
    return Asset(name=name, uri=f"x-tidegate://pipelines/{name}", group="tidegate")


def describe_schedule(pipeline: Pipeline) -> str:
    """Say when a pipeline runs."""
    if pipeline.after:
        return f"after {' or '.join(pipeline.after)}"
    return pipeline.schedule or "by hand"
