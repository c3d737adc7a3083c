"""What the API answers with; the values within are the core's own."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel

from tidegate.core.doctor.fault import Fault
from tidegate.core.fleet.health import PipelineHealth
from tidegate.core.fleet.history import History
from tidegate.core.fleet.position import SourcePosition
from tidegate.core.lag import PartitionLag
from tidegate.core.quarantine import Tally


class FleetPage(BaseModel):
    """Some of the pipelines that the user may see."""

    now: datetime
    total: int
    """How many there are in all that match."""
    pipelines: list[PipelineHealth]


class PipelineDetail(BaseModel):
    """One pipeline in full."""

    now: datetime
    health: PipelineHealth
    positions: list[SourcePosition]
    query_id: str | None
    watermark: datetime | None
    source_types: list[str]
    schedule: str
    has_quarantine: bool
    after: list[str]


class BatchPage(BaseModel):
    """Some of the batches, the newest first."""

    now: datetime
    history: History


class Spec(BaseModel):
    """A spec as it was written: variables are not filled in."""

    file: str
    text: str


class Findings(BaseModel):
    """What the doctor found."""

    is_healthy: bool
    faults: list[Fault]


class PartitionLags(BaseModel):
    """How far each partition is behind, by the broker's own word."""

    partitions: list[PartitionLag]
    problem: str | None = None
    """Why the broker could not be asked."""


class QuarantinedRow(BaseModel):
    """One value or row that was put aside."""

    rule: str
    sink: str | None
    reason: str | None
    place: str
    content: str
    quarantined_at: datetime
    run_id: str | None


class Quarantine(BaseModel):
    """What was put aside."""

    tallies: list[Tally]
    rows: list[QuarantinedRow]
