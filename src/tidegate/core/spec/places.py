"""The folders that pipelines write to, and which of them would mix their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tidegate.core.spec.base import normalise_location

Field = tuple[str | int, ...]


class Kind(StrEnum):
    """What is kept in a folder."""

    TABLE = "table"
    ROUTES = "routes"
    FILES = "files"
    QUARANTINE = "quarantine"


@dataclass(frozen=True)
class Place:
    """A folder that a pipeline writes to."""

    pipeline: str
    field: Field
    """Where its spec says so."""
    kind: Kind
    location: str

    def spell_field(self) -> str:
        """Spell where its spec says so."""
        first, *rest = self.field
        return f"{first}{''.join(f'[{part}]' for part in rest)}"

    def is_within(self, other: Place) -> bool:
        """Whether the folder is another one, or inside it."""
        return f"{self.location}/".startswith(f"{other.location}/")

    def find_clash(self, other: Place) -> str | None:
        """Say why a pipeline must not write here while another place is as it is."""
        owner = self._name_owner(other)
        if other.kind is Kind.ROUTES and self._is_route_of(other):
            return (
                f"{self.location} is within {other.location}, where {owner} names tables by a "
                "column, and one of them could be it; write elsewhere"
            )
        if other.kind is Kind.QUARANTINE and self.is_within(other):
            return (
                f"{self.location} is where {owner} puts rows aside, and a replay would take those "
                "of both; give each its own"
            )
        if self.location != other.location or Kind.QUARANTINE in (self.kind, other.kind):
            return None
        if Kind.FILES in (self.kind, other.kind):
            return (
                f"{self.location} is written to by {owner} too, and the log of a folder of files "
                "takes the batches of one sink alone; give each its own"
            )
        if self.pipeline == other.pipeline:
            return f"{self.location} is the table of another sink too; have one sink take all rows"
        return None

    def _name_owner(self, other: Place) -> str:
        if other.pipeline != self.pipeline:
            return other.pipeline
        return "this pipeline" if other.kind is Kind.QUARANTINE else "another sink"

    def _is_route_of(self, other: Place) -> bool:
        # Two pipelines may add to the same tables, as they may to one.
        adds_too = self.kind is Kind.ROUTES and self.location == other.location
        return self.is_within(other) and not (adds_too and self.pipeline != other.pipeline)


def list_places(pipeline: Any) -> Iterator[Place]:
    """List where a pipeline writes to, also one that is not validated yet."""
    name = str(field_of(pipeline, "name"))
    sinks = field_of(pipeline, "sinks")
    for number, sink in enumerate(sinks if isinstance(sinks, list | tuple) else ()):
        kind, location = _find_place(sink)
        if kind and isinstance(location, str):
            yield Place(name, ("sinks", number), kind, normalise_location(location))
    aside = field_of(pipeline, "quarantine")
    location = aside if isinstance(aside, str) and aside else name_quarantine(name)
    yield Place(name, ("quarantine",), Kind.QUARANTINE, normalise_location(location))


def name_quarantine(pipeline: str) -> str:
    """Name the table of what a pipeline puts aside, where its spec names none."""
    return f"quarantine/{pipeline}"


def field_of(part: Any, name: str) -> Any:
    """Read a field of a part of a spec, validated or not."""
    return part.get(name) if isinstance(part, Mapping) else getattr(part, name, None)


def _find_place(sink: Any) -> tuple[Kind | None, Any]:
    match field_of(sink, "type"):
        case "delta":
            is_routed = field_of(sink, "route_by")
            return (Kind.ROUTES if is_routed else Kind.TABLE), field_of(sink, "table")
        case "files":
            return Kind.FILES, field_of(sink, "path")
    return None, None
