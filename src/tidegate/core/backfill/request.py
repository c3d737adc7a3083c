"""What a person asks for: which range of which pipeline, and what becomes of the rows that are there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from tidegate.core.backfill.range import PLACES
from tidegate.core.errors import BackfillError
from tidegate.core.spec.base import Count, Moment, Name, SpecModel, tell_error
from tidegate.core.spec.files import FilesSource
from tidegate.core.spec.kafka import KafkaSource, Position, Topic
from tidegate.core.spec.loader import LoadedSpec
from tidegate.core.spec.pipeline import OutputMode, Pipeline
from tidegate.core.spec.sinks.delta import KEYED, DeltaMode, DeltaSink
from tidegate.core.spec.sinks.jdbc import JdbcMode, JdbcSink
from tidegate.core.spec.sinks.sink import Sink
from tidegate.core.spec.source import DeltaSource, Source

MOST_SLICES, MOST_AT_ONCE = 1000, 64
_RANGES = {
    "offsets": "kafka",
    "first_version": "delta",
    "last_version": "delta",
    "glob": "files",
    "paths": "files",
}
"""The fields that say a range, and the kind of source that each is for; times are for all."""


class Mode(StrEnum):
    """What becomes of rows of the range that a table has already."""

    REPLACE = "replace"
    MERGE = "merge"
    APPEND = "append"


def _read_json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise ValueError(f"must be JSON: {error}") from error


def _read_lines(value: Any) -> Any:
    return value.split("\n") if isinstance(value, str) else value


Span = tuple[Position, Position]
_MOMENT: TypeAdapter[Any] = TypeAdapter(Moment)
_VERSION: TypeAdapter[Any] = TypeAdapter(Position)


class Request(SpecModel):
    """A backfill as it is asked for, by a form, the API or the command line."""

    pipeline: Name = Field(description="Whose source is read once more.")
    mode: Mode = Field(
        description="replace swaps the range as a whole; merge brings rows in by their keys; append "
        "adds them, where the table has none of the range.",
    )
    offsets: (
        Annotated[
            dict[Topic, Annotated[dict[Position, Span], Field(min_length=1)]],
            Field(min_length=1),
            BeforeValidator(_read_json),
        ]
        | None
    ) = Field(
        default=None,
        description='Kafka: from and up to, not including, by partition: {"orders": {"0": [5, 90]}}.',
    )
    since: Moment | None = Field(default=None, description="From this time on.")
    until: Moment | None = Field(default=None, description="Up to, not including, this time.")
    first_version: Position | None = Field(default=None, description="Delta: the first version.")
    last_version: Position | None = Field(default=None, description="Delta: the last version.")
    glob: str | None = Field(default=None, min_length=1, description="Files: names, as a pattern.")
    paths: Annotated[tuple[str, ...], BeforeValidator(_read_lines)] | None = Field(
        default=None, min_length=1, description="Files: just these, one a line."
    )
    slices: Annotated[Count, Field(le=MOST_SLICES)] = Field(
        default=1, description="Cut the range into so many parts, each resumed by itself."
    )
    parallelism: Annotated[Count, Field(le=MOST_AT_ONCE)] = Field(
        default=1, description="Run so many slices at once, by a driver each."
    )

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        said = {field for field in (*_RANGES, "since", "until") if given.get(field) is not None}
        if not said:
            yield f"needs a range: {', '.join(_RANGES)}, since or until"
        kinds = sorted({_RANGES[field] for field in said if field in _RANGES})
        if len(kinds) > 1:
            yield f"takes one kind of range, not one for {' and one for '.join(kinds)}"
        exact = said & {"offsets", "first_version", "last_version", "paths"}
        timed = said & {"since", "until"}
        if exact and timed:
            yield f"takes {', '.join(sorted(exact))} or {', '.join(sorted(timed))}, not both"
        if "paths" in said and "glob" in said:
            yield "takes paths or glob, not both"
        since, until = given.get("since"), given.get("until")
        if since is not None and until is not None and _is_after(since, until, _MOMENT, equal=True):
            yield "since must be before until"
        first, last = given.get("first_version"), given.get("last_version")
        if first is not None and last is not None and _is_after(first, last, _VERSION, equal=False):
            yield "first_version must not be after last_version"


def parse_request(given: Mapping[str, Any], specs: list[LoadedSpec]) -> tuple[Request, Pipeline]:
    """Parse what was asked for, telling all mistakes at once."""
    filled = {key: value for key, value in given.items() if value not in (None, "")}
    spec = next((spec for spec in specs if spec.name == filled.get("pipeline")), None)
    problems = [] if spec else list(_tell_unknown(filled, specs))
    pipeline = spec.pipeline if spec and not spec.error else None
    if spec and spec.error:
        problems.append(f"pipeline: {spec.error}")
    request = None
    try:
        request = Request.model_validate(filled)
    except ValidationError as error:
        problems += [tell_error(detail) for detail in error.errors()]
    if pipeline:
        problems += _find_misfits(filled, pipeline)
    if problems or request is None or pipeline is None:
        raise BackfillError(*dict.fromkeys(problems))
    return request, pipeline


def _tell_unknown(given: Mapping[str, Any], specs: list[LoadedSpec]) -> Iterator[str]:
    known = ", ".join(sorted(spec.name for spec in specs if spec.pipeline)) or "none"
    if "pipeline" in given:
        yield f"pipeline: there is no {given['pipeline']!r}; there are {known}"


def _find_misfits(given: Mapping[str, Any], pipeline: Pipeline) -> Iterator[str]:
    """Find what the pipeline cannot do of what was asked for."""
    source = pipeline.source
    if source is None:
        yield (
            f"pipeline: {pipeline.name} reads several sources, and a range is one of a single source"
        )
    elif not isinstance(source, KafkaSource | DeltaSource | FilesSource):
        yield f"pipeline: a source of type {source.type} cannot be read by ranges"
    else:
        for field, kind in _RANGES.items():
            if field in given and kind != source.type:
                yield f"{field}: is for a source of type {kind}, and {pipeline.name} has {source.type}"
    if pipeline.output_mode is not OutputMode.APPEND:
        yield (
            f"pipeline: {pipeline.name} gives results by output_mode {pipeline.output_mode}, and those "
            "of a range alone would be taken for all"
        )
    mode = given.get("mode")
    for sink in pipeline.sinks:
        told = _find_misfit(mode, sink, source)
        if told:
            yield f"mode: {mode} is not for the sink {sink.name}: {told}"


def is_keyed(sink: Sink) -> bool:
    """Whether a sink knows rows by their keys."""
    return (isinstance(sink, DeltaSink) and sink.mode in KEYED) or (
        isinstance(sink, JdbcSink) and sink.mode is JdbcMode.UPSERT
    )


def _find_misfit(mode: Any, sink: Sink, source: Source | None) -> str | None:
    lacking = _list_lacking(sink, source) if mode in (Mode.REPLACE, Mode.APPEND) else []
    if lacking:
        return (
            f"its columns leave out {', '.join(lacking)}, by which rows tell where they came from"
        )
    match mode:
        case Mode.MERGE if not is_keyed(sink):
            return "it does not know rows by keys"
        case Mode.APPEND if is_keyed(sink):
            return "it knows rows by keys; take merge"
        case Mode.APPEND if not isinstance(sink, DeltaSink) or sink.route_by:
            return "whether it has rows of the range can be told of a single Delta table alone"
        case Mode.REPLACE:
            return _find_misfit_of_replace(sink, source)
    return None


def _list_lacking(sink: Sink, source: Source | None) -> list[str]:
    places = PLACES.get(source.type, ()) if source else ()
    columns = sink.columns if isinstance(sink, DeltaSink) else ()
    return [place for place in places if columns and place not in columns]


def _find_misfit_of_replace(sink: Sink, source: Source | None) -> str | None:
    if not isinstance(sink, DeltaSink) or sink.route_by:
        return "only a single Delta table swaps rows in one commit"
    if sink.mode is not DeltaMode.APPEND:
        return (
            f"its mode is {sink.mode}, and a row of it may come from outside the range; take merge"
        )
    if isinstance(source, DeltaSource) and source.change_data_feed:
        return "a change stands for rows of other versions too; take merge into a table with keys"
    if isinstance(source, KafkaSource | FilesSource | DeltaSource) and not source.provenance:
        return "its rows do not tell where they came from; source.provenance must be true"
    return None


def _is_after(one: Any, other: Any, kind: TypeAdapter[Any], *, equal: bool) -> bool:
    try:
        first, last = kind.validate_python(one), kind.validate_python(other)
    except ValidationError:
        return False  # told by itself
    return bool(first > last or (equal and first == last))
