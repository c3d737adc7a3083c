"""A checkpoint as the command line names it: by a path, or by the pipeline it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from upath import UPath

from tidegate.core.checkpoint.log import require_checkpoint
from tidegate.core.errors import NotACheckpointError
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import find_spec, load_specs
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.storage import list_names, open_path

PlaceArgument = Annotated[
    str,
    typer.Argument(
        metavar="PATH|PIPELINE",
        help="A checkpoint, by its path or URL; or a pipeline, to have its source and sinks looked at "
        "as well.",
    ),
]


@dataclass(frozen=True)
class Place:
    """A checkpoint, and the pipeline it belongs to where that is known."""

    name: str
    checkpoint: UPath
    settings: Settings
    pipeline: Pipeline | None = None

    @classmethod
    def find(cls, name: str) -> Place:
        """Find what a name means, refusing one that holds no checkpoint."""
        place = cls.locate(name)
        if place.pipeline is None:
            require_checkpoint(place.checkpoint)
        if not list_names(place.checkpoint):
            raise NotACheckpointError(
                f"There is no checkpoint at {place.checkpoint}: no query has written one yet.",
                remedy="Run the pipeline first, or give the folder that a query has as its "
                "checkpointLocation.",
            )
        return place

    @classmethod
    def locate(cls, name: str) -> Place:
        """Find what a name means, whether or not there is anything."""
        settings = Settings.from_environment()
        if is_path(name):
            return cls(name, open_path(name), settings)
        specs = load_specs(settings.pipelines)
        pipeline = find_spec(specs, settings.pipelines, name).require()
        return cls(name, settings.checkpoint_of(name), settings, pipeline)


def is_path(name: str) -> bool:
    """Whether a checkpoint is meant, and not a pipeline: names have neither slash nor dot."""
    return any(mark in name for mark in "/\\.~:")


def locate(name: str) -> UPath:
    """Find where a checkpoint is or would be, whether or not it is there."""
    return open_path(name) if is_path(name) else Settings.from_environment().checkpoint_of(name)
