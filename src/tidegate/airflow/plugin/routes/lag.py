"""How far each Kafka partition is behind, asked of the broker."""

from __future__ import annotations

from fastapi import APIRouter

from tidegate.airflow.plugin.access import READS_RUNS, DeploymentDep, SoundSpecDep
from tidegate.airflow.plugin.models import PartitionLags
from tidegate.core.errors import TidegateError

router = APIRouter(prefix="/api/pipelines/{dag_id}")


@router.get("/lag", dependencies=[READS_RUNS])
async def measure(spec: SoundSpecDep, deployment: DeploymentDep) -> PartitionLags:
    """Measure lag; a broker that cannot be reached is part of the answer."""
    if not spec.require().kafka_inputs:
        return PartitionLags(partitions=[])
    try:
        return PartitionLags(partitions=await deployment.measure_lag(spec.name))
    except TidegateError as error:
        return PartitionLags(partitions=[], problem=str(error))
