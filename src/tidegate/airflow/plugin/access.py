"""Who may see what: Airflow's own login, and its own word on each DAG."""

from __future__ import annotations

from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import Depends, HTTPException, Request, status

from tidegate.airflow.plugin.deployment import Deployment
from tidegate.core.spec.loader import LoadedSpec

READS_RUNS = Depends(requires_access_dag("GET", DagAccessEntity.RUN))
READS_CODE = Depends(requires_access_dag("GET", DagAccessEntity.CODE))
READS_LOGS = Depends(requires_access_dag("GET", DagAccessEntity.TASK_LOGS))
"""For rows of data: a log shows such things too."""


def get_deployment(request: Request) -> Deployment:
    """Get what the app answers from."""
    deployment: Deployment = request.app.state.deployment
    return deployment


DeploymentDep = Annotated[Deployment, Depends(get_deployment)]


def list_visible(user: GetUserDep) -> set[str]:
    """List the DAGs that the user may read."""
    return get_auth_manager().get_authorized_dag_ids(user=user)


VisibleDep = Annotated[set[str], Depends(list_visible)]


def find_spec(dag_id: str, deployment: DeploymentDep) -> LoadedSpec:
    """Find the spec of a DAG among those that were loaded; a name never becomes a path."""
    spec = deployment.list_specs().get(dag_id)
    if spec is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"There is no pipeline {dag_id!r}.")
    return spec


def find_sound_spec(spec: Annotated[LoadedSpec, Depends(find_spec)]) -> LoadedSpec:
    """Find the spec of a DAG, refusing one that has mistakes."""
    if spec.pipeline is None or spec.error:
        raise HTTPException(status.HTTP_409_CONFLICT, str(spec.error))
    return spec


SpecDep = Annotated[LoadedSpec, Depends(find_spec)]
SoundSpecDep = Annotated[LoadedSpec, Depends(find_sound_spec)]
