"""What of a spec its checkpoint and its sinks depend on, as it was when last run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, TypeAdapter

from tidegate.core.spec.pipeline import Pipeline

Traits = dict[str, Any]

_SOURCE_TRAITS = (
    *("type", "connection", "topics", "topic_pattern", "partitions"),
    *("path", "table", "change_data_feed", "format"),
)
_SINK_TRAITS = (
    *("type", "connection", "table", "path", "topic", "format", "function"),
    *("mode", "keys", "sequence", "route_by", "valid_from", "valid_to", "current"),
)
_DECIDING = {"name", "where", "expect", "keys", "sequence", "route_by"}
_PARTS = {"source", "sources", "tables", "transform", "output_mode", "sinks", "expect", "spark"}


@dataclass(frozen=True)
class Shape:
    """What a pipeline reads, does and writes, as far as going on depends on it."""

    sources: dict[str, Traits]
    sinks: dict[str, Traits]
    output_mode: str
    rules: str
    """A digest of what decides which sink takes a row, and which rows are put aside."""
    digest: str
    """Of all that a query is made of, the Python beside the spec included."""

    @classmethod
    def of(cls, pipeline: Pipeline, folder: Path) -> Self:
        """Take the shape of a pipeline whose Python is in a folder."""
        return cls(
            {name: _pick(source, _SOURCE_TRAITS) for name, source in pipeline.inputs.items()},
            {sink.name: _pick(sink, _SINK_TRAITS) for sink in pipeline.sinks},
            str(pipeline.output_mode),
            digest_rules(pipeline),
            _digest(pipeline, folder),
        )

    def to_json(self) -> dict[str, Any]:
        """Spell the shape for the ledger."""
        return asdict(self)


SHAPE: TypeAdapter[Shape] = TypeAdapter(Shape)


def _pick(part: BaseModel, traits: tuple[str, ...]) -> Traits:
    given = part.model_dump(mode="json", include=set(traits))
    return {key: given[key] for key in traits if given.get(key) not in (None, [], {}, False)}


def digest_rules(pipeline: Pipeline) -> str:
    """Take a digest of what decides which sink takes a row, and which rows are put aside."""
    spelled = pipeline.model_dump_json(include={"expect": True, "sinks": {"__all__": _DECIDING}})
    return sha256(spelled.encode()).hexdigest()


def _digest(pipeline: Pipeline, folder: Path) -> str:
    digest = sha256(pipeline.model_dump_json(include=_PARTS).encode())
    # A step may import any other module, so all of them count.
    for file in sorted(folder.rglob("*.py")):
        digest.update(f"{file.relative_to(folder)}\0".encode() + file.read_bytes())
    return digest.hexdigest()
