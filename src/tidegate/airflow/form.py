"""What the forms of DAGs that are started by hand have in common."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param, get_parsing_context
from pydantic import BaseModel

from tidegate.core.errors import SpecError
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import load_specs

TIME = {"type": ["null", "string"], "format": "date-time"}


def choose_pipeline(pipelines: list[str], request: type[BaseModel]) -> Param:
    """Let a person choose the pipeline of a request."""
    known: dict[str, Any] = {"enum": pipelines} if pipelines else {}
    described = request.model_fields["pipeline"].description
    return Param(type="string", title="pipeline", description=described, **known)


def list_pipelines(settings: Settings) -> list[str]:
    """List the pipelines to choose from; none for a task's process, where one was chosen."""
    if get_parsing_context().dag_id:
        return []  # reading all specs would cost it seconds
    try:
        specs = load_specs(settings.pipelines)
    except SpecError:
        return []  # shown by raise_spec_errors
    return sorted(spec.name for spec in specs if not spec.error)
