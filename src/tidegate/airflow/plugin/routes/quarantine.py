"""What a pipeline put aside: how much by rule, and the newest of it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from tidegate.airflow.plugin.access import READS_LOGS, DeploymentDep, SoundSpecDep
from tidegate.airflow.plugin.models import Quarantine, QuarantinedRow
from tidegate.core.quarantine import tell_content, tell_place

router = APIRouter(prefix="/api/pipelines/{dag_id}")

_LONGEST_CONTENT = 2000


@router.get("/quarantine", dependencies=[READS_LOGS])
async def look_aside(
    spec: SoundSpecDep,
    deployment: DeploymentDep,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Quarantine:
    """Show what was put aside."""
    tallies, rows = await deployment.look_aside(spec.name, limit)
    return Quarantine(tallies=tallies, rows=[_to_row(row) for row in rows])


def _to_row(row: dict[str, Any]) -> QuarantinedRow:
    return QuarantinedRow(
        rule=row["rule"],
        sink=row["sink"],
        reason=row["reason"],
        place=tell_place(row),
        content=tell_content(row)[:_LONGEST_CONTENT],
        quarantined_at=row["quarantined_at"],
        run_id=row["run_id"],
    )
