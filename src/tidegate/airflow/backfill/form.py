"""The form of a backfill: its fields are those of a request."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param

from tidegate.airflow.form import TIME, choose_pipeline
from tidegate.core.backfill.request import MOST_AT_ONCE, MOST_SLICES, Mode, Request

DRY_RUN = "dry_run"

_KAFKA, _DELTA, _FILES = "Kafka", "Delta", "Files"
_VERSION = {"type": ["null", "integer"], "minimum": 0}


def list_fields(pipelines: list[str]) -> dict[str, Param]:
    """List the fields of the form."""
    return {
        "pipeline": choose_pipeline(pipelines, Request),
        "mode": _field("mode", Mode.REPLACE.value, type="string", enum=[*map(str, Mode)]),
        "since": _field("since", **TIME),
        "until": _field("until", **TIME),
        "offsets": _field("offsets", section=_KAFKA, type=["null", "object"]),
        "first_version": _field("first_version", section=_DELTA, **_VERSION),
        "last_version": _field("last_version", section=_DELTA, **_VERSION),
        "glob": _field("glob", section=_FILES, type=["null", "string"]),
        "paths": _field("paths", section=_FILES, type=["null", "array"], items={"type": "string"}),
        "slices": _field("slices", 1, type="integer", minimum=1, maximum=MOST_SLICES),
        "parallelism": _field("parallelism", 1, type="integer", minimum=1, maximum=MOST_AT_ONCE),
        DRY_RUN: Param(
            default=True,
            type="boolean",
            title="dry run",
            description="Say in the log of plan what would be done, and do nothing.",
        ),
    }


def _field(name: str, default: Any = None, **schema: Any) -> Param:
    described = Request.model_fields[name].description
    return Param(default=default, title=name.replace("_", " "), description=described, **schema)
