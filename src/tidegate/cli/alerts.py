"""`tidegate alerts`: what is beyond its rules, and what would be told."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.core.alerts.channels import read_channels
from tidegate.core.alerts.incident import Incidents
from tidegate.core.alerts.watch import Sighting, Watch
from tidegate.core.settings import Settings
from tidegate.core.spec.alerts import Rule
from tidegate.core.spec.loader import find_spec, load_specs

_NEW = "new"


@dataclass(frozen=True)
class Row:
    """A rule that is broken, or was when it was looked at last."""

    pipeline: str
    rule: Rule
    since: str | None
    """None where the next look of Airflow's is the first to see it."""
    state: str
    fact: str
    remedy: str
    untold: tuple[str, ...]
    """Who is yet to be told."""


def alerts(
    name: Annotated[str | None, typer.Argument(help="One pipeline; all by default.")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what is beyond its rules right now; nothing is told or written."""
    settings = Settings.from_environment()
    specs = load_specs(settings.pipelines)
    wanted = find_spec(specs, settings.pipelines, name).name if name else None
    seen = Watch(settings, read_channels()).look(specs, wanted)
    rows = [row for each in seen for row in _list_rows(each, settings)]
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        _print(rows, len(seen))
    for each in seen:
        for reason in dict.fromkeys(each.unknown.values()):
            rules = ", ".join(rule for rule, why in each.unknown.items() if why == reason)
            print(f"tidegate: {each.pipeline}: {rules} cannot be told: {reason}", file=sys.stderr)
    raise typer.Exit(1 if rows else 0)


def _list_rows(seen: Sighting, settings: Settings) -> Iterator[Row]:
    known = Incidents.beside(settings.state_of(seen.pipeline)).read()
    book = known.update(
        *(seen.alerts, seen.unknown, [channel.label for channel in seen.channels], seen.at)
    )
    before = {incident.alert.rule for incident in known.open}
    for incident in book.open:
        alert = incident.alert
        is_new = alert.rule not in before
        state = _NEW if is_new else "unknown" if alert.rule in seen.unknown else "open"
        since = None if is_new else incident.opened_at
        yield Row(
            *(seen.pipeline, alert.rule, since, state, alert.fact, alert.remedy, incident.untold)
        )


def _print(rows: Iterable[Row], looked_at: int) -> None:
    rows, console = list(rows), Console()
    if not rows:
        print(f"{looked_at} pipeline{'s' * (looked_at != 1)}, nothing beyond the rules.")
        return
    table = Table()
    for heading in ("pipeline", "rule", "since", "state"):
        table.add_column(heading, no_wrap=True)
    table.add_column("to be told")
    for row in rows:
        since = (row.since or "-")[:19].replace("T", " ")
        table.add_row(
            *(row.pipeline, str(row.rule), since, row.state, Text(", ".join(row.untold) or "-"))
        )
    console.print(table)
    for row in rows:
        told = f"{row.pipeline}: {row.rule}: {row.fact} {row.remedy}"
        console.print(told, markup=False, soft_wrap=True)
