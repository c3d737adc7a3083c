"""What a swap would do to other pipelines that have to do with the same tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate.core.settings import Settings
from tidegate.core.spec.files import FilesSource
from tidegate.core.spec.kafka import KafkaSource
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.source import DeltaSource, Source


def find_losers(
    pipeline: Pipeline, others: Iterable[Pipeline], settings: Settings
) -> Iterator[str]:
    """Find pipelines whose rows a swap would take away with its own."""
    tables = _list_tables(pipeline, settings)
    for other in others:
        shared = sorted(tables[url] for url in tables.keys() & _list_tables(other, settings))
        reads_same = any(
            _overlaps(pipeline.source, source, settings) for source in other.inputs.values()
        )
        if shared and reads_same:
            yield (
                f"{other.name} writes rows of the same source to {', '.join(shared)} too, and a swap "
                "would take them away; take another table for one of the two"
            )


def find_stopped(
    pipeline: Pipeline, others: Iterable[Pipeline], settings: Settings
) -> Iterator[str]:
    """Find pipelines that read a table and stop at a version that changes rows."""
    tables = _list_tables(pipeline, settings)
    for other in others:
        for source in other.inputs.values():
            if not isinstance(source, DeltaSource) or source.takes_changes:
                continue
            table = tables.get(settings.locate_url(source.table))
            if table:
                yield (
                    f"{other.name} reads {table} and stops at a version that changes rows; say "
                    "skip_change_commits in its source, and backfill it too"
                )


def _list_tables(pipeline: Pipeline, settings: Settings) -> dict[str, str]:
    return {settings.locate_url(sink.table): sink.table for sink in pipeline.delta_sinks}


def _overlaps(one: Source | None, other: Source, settings: Settings) -> bool:
    """Whether two sources may give the same rows."""
    match (one, other):
        case (KafkaSource(), KafkaSource()):
            is_open = one.topic_pattern or other.topic_pattern
            return bool(is_open or set(one.topics or ()) & set(other.topics or ()))
        case (DeltaSource(), DeltaSource()):
            return settings.locate_url(one.table) == settings.locate_url(other.table)
        case (FilesSource(), FilesSource()):
            first, second = (f"{settings.locate_url(s.path).rstrip('/')}/" for s in (one, other))
            return first.startswith(second) or second.startswith(first)
    return False
