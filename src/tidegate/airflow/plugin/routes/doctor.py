"""What is wrong with a pipeline, looked at when somebody asks."""

from __future__ import annotations

from fastapi import APIRouter

from tidegate.airflow.plugin.access import READS_LOGS, DeploymentDep, SoundSpecDep
from tidegate.airflow.plugin.models import Findings
from tidegate.core.doctor.fault import list_errors

router = APIRouter(prefix="/api/pipelines/{dag_id}")


@router.get("/doctor", dependencies=[READS_LOGS])
async def examine(spec: SoundSpecDep, deployment: DeploymentDep) -> Findings:
    """Examine checkpoint, history, sources and sinks."""
    faults = await deployment.examine(spec.name)
    return Findings(is_healthy=not list_errors(faults), faults=faults)
