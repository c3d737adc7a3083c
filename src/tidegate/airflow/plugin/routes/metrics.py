"""The fleet in Prometheus' text format, under the same login as everything else."""

from __future__ import annotations

from fastapi import APIRouter
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response

from tidegate.airflow.plugin.access import DeploymentDep, VisibleDep
from tidegate.airflow.plugin.gauges import FleetCollector

router = APIRouter()


@router.get("/metrics")
def read_metrics(deployment: DeploymentDep, visible: VisibleDep) -> Response:
    """Read the gauges of every pipeline that the user may see."""
    registry = CollectorRegistry()
    registry.register(FleetCollector(deployment.read_fleet().restrict(visible)))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
