"""`tidegate check`: whether specs can go on from the checkpoints that are there."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.cli.run import submit
from tidegate.core.compatibility.comparison import Comparison, find_orphans
from tidegate.core.compatibility.verdict import Compatibility, Difference, Verdict
from tidegate.core.errors import SpecError
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import find_spec, load_specs
from tidegate.core.submission import prepare_check, require_jars

_STYLES = {
    Verdict.NEW: "dim",
    Verdict.COMPATIBLE: "green",
    Verdict.UNKNOWN: "yellow",
    Verdict.MIGRATE: "yellow",
    Verdict.FRESH: "bold red",
}


def check(
    name: Annotated[
        str | None, typer.Argument(help="The pipeline; all where none is named.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="The state to go on from; TIDEGATE_STATE by default."),
    ] = None,
    master: Annotated[
        str, typer.Option(envvar="TIDEGATE_MASTER", help="Spark's master.")
    ] = "local[*]",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tell, before specs are deployed, whether they can go on from the checkpoints there are.

    For each pipeline: compatible, how to migrate, or that it needs a fresh checkpoint. Ends with 0
    if all can be deployed as they are, with 1 if not. A JVM is started only where steps of a
    pipeline with a checkpoint were changed.
    """
    settings = Settings.from_environment()
    if against:
        settings = replace(settings, state=_spell_place(against))
    specs = load_specs(settings.pipelines)
    chosen = [find_spec(specs, settings.pipelines, name)] if name else specs
    orphans = find_orphans(settings, {spec.name for spec in specs})
    comparisons = [
        Comparison(spec.require(), settings, orphans) for spec in chosen if not spec.error
    ]
    of_plans = _plan([c.pipeline.name for c in comparisons if c.needs_plan], settings, master)
    found = [c.conclude(of_plans.get(c.pipeline.name, ())) for c in comparisons]
    found += [_judge_broken(spec.name, spec.error, settings) for spec in chosen if spec.error]
    is_fine = all(each.verdict.is_fine for each in found)
    if as_json:
        told = {"compatible": is_fine, "pipelines": [each.to_json() for each in found]}
        print(json.dumps(told, indent=2))
    else:
        _print(found)
    raise typer.Exit(0 if is_fine else 1)


def _judge_broken(name: str, error: SpecError, settings: Settings) -> Compatibility:
    difference = Difference("spec_broken", Verdict.UNKNOWN, str(error))
    return Compatibility.of(name, str(settings.checkpoint_of(name)), [difference])


def _spell_place(given: str) -> str:
    return given if ":/" in given else str(Path(given).absolute())


def _plan(names: list[str], settings: Settings, master: str) -> dict[str, tuple[Difference, ...]]:
    """Have Spark plan the steps of pipelines, all in one driver."""
    if not names:
        return {}
    require_jars(settings)
    with tempfile.TemporaryDirectory(prefix="tidegate-check-") as folder:
        result = Path(folder) / "result.json"
        submit(prepare_check(names, settings, result), master, output=sys.stderr)
        found = json.loads(result.read_text())
    return {
        name: tuple(Difference(**one | {"verdict": Verdict(one["verdict"])}) for one in each)
        for name, each in found.items()
    }


def _print(found: Iterable[Compatibility]) -> None:
    table = Table()
    table.add_column("pipeline", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("why")
    table.add_column("what to do")
    for each in found:
        verdict = Text(each.verdict, style=_STYLES[each.verdict])
        whys = each.differences or (Difference("", each.verdict, ""),)
        for number, why in enumerate(whys):
            cells = (each.pipeline, verdict) if number == 0 else ("", "")
            table.add_row(*cells, Text(why.message), Text(why.remedy))
        table.add_section()
    Console().print(table)
