"""All pipelines that the user may see."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query

from tidegate.airflow.plugin.access import DeploymentDep, VisibleDep
from tidegate.airflow.plugin.models import FleetPage

router = APIRouter()


@router.get("/api/fleet")
def list_pipelines(
    deployment: DeploymentDep,
    visible: VisibleDep,
    search: Annotated[str, Query(max_length=200)] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 500,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> FleetPage:
    """List pipelines by name, as many as asked for."""
    fleet = deployment.read_fleet().restrict(visible)
    found = [one for one in fleet.pipelines if search.lower() in one.pipeline.lower()]
    return FleetPage(
        now=datetime.now(UTC), total=len(found), pipelines=found[offset : offset + limit]
    )
