"""`tidegate checkpoint doctor`: what is wrong with a checkpoint, and what to do."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.core.checkpoint.log import require_checkpoint
from tidegate.core.doctor.checkpoint import examine_checkpoint
from tidegate.core.doctor.fault import Fault, Severity, list_errors
from tidegate.core.doctor.pipeline import examine_pipeline
from tidegate.core.errors import NotACheckpointError
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import find_spec, load_specs
from tidegate.core.storage import list_names, open_path

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "dim"}


def doctor(
    place: Annotated[
        str,
        typer.Argument(
            metavar="PATH|PIPELINE",
            help="A checkpoint, by its path or URL; or a pipeline, to have its source and sink looked "
            "at as well.",
        ),
    ],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tell what is wrong with a checkpoint, in which file, what Spark would do, and what to do.

    Ends with 0 if it is healthy, 1 if an error was found, 2 if there is no checkpoint.
    """
    faults = _examine(place)
    is_healthy = not list_errors(faults)
    if as_json:
        findings = [asdict(fault) for fault in faults]
        print(json.dumps({"healthy": is_healthy, "findings": findings}, indent=2))
    else:
        _print_faults(place, faults, is_healthy=is_healthy)
    raise typer.Exit(0 if is_healthy else 1)


def _examine(place: str) -> list[Fault]:
    if is_path(place):
        checkpoint = open_path(place)
        require_checkpoint(checkpoint)
        if not list_names(checkpoint):
            raise NotACheckpointError(
                f"There is no checkpoint at {checkpoint}: the folder is empty.",
                remedy="Give the folder that a query has as its checkpointLocation.",
            )
        return examine_checkpoint(checkpoint)
    settings = Settings.from_environment()
    pipeline = find_spec(load_specs(settings.pipelines), settings.pipelines, place).require()
    checkpoint = settings.checkpoint_of(place)
    if not list_names(checkpoint):
        raise NotACheckpointError(
            f"The pipeline {place} has no checkpoint yet; it would be at {checkpoint}.",
            remedy="Run it first.",
        )
    return examine_pipeline(pipeline, settings)


def is_path(place: str) -> bool:
    """Whether a checkpoint is meant, and not a pipeline: names have neither slash nor dot."""
    return any(mark in place for mark in "/\\.~:")


def _print_faults(place: str, faults: list[Fault], *, is_healthy: bool) -> None:
    console = Console()
    if faults:
        table = Table("", "what", "what to do", title=Text(place), title_justify="left")
        for fault in faults:
            kind = Text(f"{fault.severity}\n{fault.code}", style=_STYLES[fault.severity])
            table.add_row(kind, Text(fault.message), Text(fault.remedy))
        console.print(table)
    console.print(f"{place} is {'healthy' if is_healthy else 'not healthy'}.", markup=False)
