"""`tidegate checkpoint doctor`: what is wrong with a checkpoint, and what to do."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.cli.place import Place, PlaceArgument
from tidegate.core.doctor.checkpoint import examine_checkpoint
from tidegate.core.doctor.fault import Fault, Severity, list_errors
from tidegate.core.doctor.pipeline import examine_pipeline

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "dim"}


def doctor(
    place: PlaceArgument,
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


def _examine(name: str) -> list[Fault]:
    place = Place.find(name)
    if place.pipeline is None:
        return examine_checkpoint(place.checkpoint)
    return examine_pipeline(place.pipeline, place.settings)


def _print_faults(place: str, faults: list[Fault], *, is_healthy: bool) -> None:
    console = Console()
    if faults:
        table = Table("", "what", "what to do", title=Text(place), title_justify="left")
        for fault in faults:
            kind = Text(f"{fault.severity}\n{fault.code}", style=_STYLES[fault.severity])
            table.add_row(kind, Text(fault.message), Text(fault.remedy))
        console.print(table)
    console.print(f"{place} is {'healthy' if is_healthy else 'not healthy'}.", markup=False)
