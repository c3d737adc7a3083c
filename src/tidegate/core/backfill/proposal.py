"""A backfill that is asked for: read, looked for in the source, told, and begun."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.core.backfill.book import Backfill, Backfills
from tidegate.core.backfill.neighbours import find_losers
from tidegate.core.backfill.report import describe
from tidegate.core.backfill.request import Mode, Request, parse_request
from tidegate.core.backfill.survey import Found, Survey
from tidegate.core.connection import ReadConnection, read_connection
from tidegate.core.errors import BackfillError
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import load_specs
from tidegate.core.spec.pipeline import Pipeline


@dataclass(frozen=True)
class Proposal:
    """What would be done, of which nothing is done yet."""

    request: Request
    pipeline: Pipeline
    found: Found
    settings: Settings
    others: tuple[Pipeline, ...]
    """All other pipelines."""

    def describe(self) -> Iterator[str]:
        """Say what would be done."""
        return describe(self.request, self.pipeline, self.settings, self.found, self.others)

    def begin(self, name: str | None = None) -> Backfill:
        """Write down that it is to be done."""
        return Backfills(self.pipeline, self.settings).begin(self.request, self.found, name)


def propose(
    asked: Mapping[str, Any], settings: Settings, connect: ReadConnection = read_connection
) -> Proposal:
    """Find what was asked for; all mistakes are told at once."""
    specs = load_specs(settings.pipelines)
    request, pipeline = parse_request(asked, specs)
    found = Survey(request, pipeline, settings, connect).find()
    known = (spec.pipeline for spec in specs if spec.pipeline and not spec.error)
    others = tuple(one for one in known if one.name != pipeline.name)
    losers = list(find_losers(pipeline, others, settings))
    if losers and request.mode is Mode.REPLACE:
        raise BackfillError(*losers)
    return Proposal(request, pipeline, found, settings, others)
