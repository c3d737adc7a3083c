"""The batches of a pipeline, the newest first."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, status

from tidegate.airflow.plugin.access import READS_RUNS, DeploymentDep, SoundSpecDep
from tidegate.airflow.plugin.models import BatchPage
from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.errors import LedgerError
from tidegate.core.fleet.history import read_history
from tidegate.core.ledger import Ledger

router = APIRouter(prefix="/api/pipelines/{dag_id}")


@router.get("/batches", dependencies=[READS_RUNS])
def list_batches(
    spec: SoundSpecDep,
    deployment: DeploymentDep,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    before: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
) -> BatchPage:
    """List batches, as many as asked for, from the newest or from before one."""
    settings, name = deployment.settings, spec.require().name
    checkpoint = settings.checkpoint_of(name)
    newest = read_progress(checkpoint).committed_batch
    if newest is not None and before is not None:
        newest = min(newest, before - 1)
    try:
        history = read_history(Ledger.beside(settings.state_of(name)), newest, limit, checkpoint)
    except LedgerError as error:
        raise HTTPException(status.HTTP_409_CONFLICT, str(error)) from error
    return BatchPage(now=datetime.now(UTC), history=history)
