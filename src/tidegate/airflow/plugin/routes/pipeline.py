"""One pipeline: where it stands, and its spec."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter

from tidegate.airflow.asset import describe_schedule
from tidegate.airflow.plugin.access import (
    READS_CODE,
    READS_RUNS,
    DeploymentDep,
    SoundSpecDep,
    SpecDep,
)
from tidegate.airflow.plugin.models import PipelineDetail, Spec
from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.fleet.health import read_health
from tidegate.core.fleet.position import list_positions

router = APIRouter(prefix="/api/pipelines/{dag_id}")


@router.get("", dependencies=[READS_RUNS])
def read_pipeline(spec: SoundSpecDep, deployment: DeploymentDep) -> PipelineDetail:
    """Read one pipeline in full."""
    pipeline = spec.require()
    progress = read_progress(deployment.settings.checkpoint_of(pipeline.name))
    return PipelineDetail(
        now=datetime.now(UTC),
        health=read_health(spec, deployment.settings),
        positions=list(list_positions(progress)),
        query_id=progress.query_id,
        watermark=_to_moment(progress.watermark_ms),
        source_types=sorted({str(source.type) for source in pipeline.inputs.values()}),
        schedule=describe_schedule(pipeline),
        has_quarantine=pipeline.quarantines,
        after=list(pipeline.after),
    )


@router.get("/spec", dependencies=[READS_CODE])
def read_spec(spec: SpecDep) -> Spec:
    """Read a spec as it was written; what its variables stand for is not told."""
    return Spec(file=spec.file.name, text=spec.text)


def _to_moment(watermark_ms: int | None) -> datetime | None:
    return datetime.fromtimestamp(watermark_ms / 1000, UTC) if watermark_ms else None
