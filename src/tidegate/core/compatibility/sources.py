"""What a spec reads, against what the checkpoint has read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tidegate.core.checkpoint.progress import Progress
from tidegate.core.compatibility.verdict import Difference, Verdict
from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import BlockedError, TidegateError
from tidegate.core.obstacles import check_sources
from tidegate.core.settings import Settings
from tidegate.core.shape import Shape, Traits
from tidegate.core.spec.kafka import KafkaSource, compile_pattern
from tidegate.core.spec.pipeline import ONLY_SOURCE, Pipeline
from tidegate.core.spec.source import DeltaSource, Source
from tidegate.core.work.delta import check_same_table

_NEW_NAME = "Give the changed pipeline a new name and a new table, and so a checkpoint of its own."
# Topics and tables have ids of their own, which plan holds against the checkpoint.
_PLACES = {"files": ("path",), "spark": ("format", "connection")}


@dataclass(frozen=True)
class SourceComparison:
    """Holds the sources of a spec against those of its checkpoint."""

    pipeline: Pipeline
    settings: Settings
    progress: Progress
    before: Shape | None
    """What the last run had; None where nobody wrote it down."""
    now: Shape

    def find_differences(self) -> Iterator[Difference]:
        """Find what is read differently."""
        try:
            check_sources(self.pipeline, self.progress)
        except BlockedError as error:
            told = " ".join(filter(None, (error.fact, error.cause)))
            yield Difference(error.code, Verdict.FRESH, told, error.remedy)
            return
        for name, source in self.pipeline.inputs.items():
            position = self.progress.find_committed(name)
            if isinstance(source, KafkaSource) and position:
                yield from self._compare_topics(name, source, position)
            elif isinstance(source, DeltaSource) and position:
                yield from self._compare_table(source, position)
            if self.before and name in self.before.sources:
                yield from self._compare_places(name, source, self.before.sources[name])

    def _compare_topics(
        self, name: str, source: KafkaSource, position: dict[str, Any]
    ) -> Iterator[Difference]:
        gone = sorted(topic for topic in position if not _reads(source, topic))
        if gone:
            yield Difference(
                "topics_removed",
                Verdict.MIGRATE,
                f"{_tell(name)} no longer reads {', '.join(gone)}, which the checkpoint has a position "
                "in; plan would block.",
                "Run the pipeline until it is idle, then deploy it under a new name with a new table, "
                "with starting_offsets at what is committed now: "
                f"{_spell_offsets(position, gone)}.",
            )
        new = sorted(_list_topics(source) - set(position))
        if new:
            yield Difference(
                "topics_added",
                Verdict.COMPATIBLE,
                f"{_tell(name)} also reads {', '.join(new)} now, from offset 0 on.",
            )
        for topic, wanted in (source.partitions or {}).items():
            left_out = sorted(set(map(int, position.get(topic, ()))) - set(wanted))
            if left_out:
                yield Difference(
                    "partitions_removed",
                    Verdict.FRESH,
                    f"{_tell(name)} leaves out partitions {', '.join(map(str, left_out))} of {topic}, "
                    "which the checkpoint has a position in; plan would block.",
                    _NEW_NAME,
                )

    def _compare_table(self, source: DeltaSource, position: dict[str, Any]) -> Iterator[Difference]:
        try:
            log = DeltaLog(self.settings.locate(source.table))
            check_same_table(log, log.require_version(), position["reservoirId"])
        except BlockedError as error:
            yield Difference(error.code, Verdict.FRESH, error.fact, error.remedy)
        except (TidegateError, OSError) as error:
            yield Difference(
                "source_away", Verdict.UNKNOWN, f"The table {source.table} cannot be read: {error}"
            )

    def _compare_places(self, name: str, source: Source, before: Traits) -> Iterator[Difference]:
        now = self.now.sources[name]
        for trait in _PLACES.get(source.type, ()):
            if before.get(trait) == now.get(trait):
                continue
            yield Difference(
                f"source_{trait}_changed",
                Verdict.MIGRATE,
                f"{_tell(name)} has {trait} {now.get(trait)}, and had {before.get(trait)}. The "
                "checkpoint's position was taken there, and means nothing elsewhere: what is at the "
                "new place is read as new, also what was read before.",
                "If what was read has moved along, give the pipeline a new name and a new table. If "
                "there is only new data, go on.",
            )
        if bool(before.get("change_data_feed")) != bool(now.get("change_data_feed")):
            yield Difference(
                "change_feed_changed",
                Verdict.FRESH,
                f"{_tell(name)} reads {'changes' if now.get('change_data_feed') else 'rows'} now, "
                "and a position in the one is none in the other.",
                _NEW_NAME,
            )


def _reads(source: KafkaSource, topic: str) -> bool:
    pattern = compile_pattern(source.topic_pattern)
    return topic in _list_topics(source) or bool(pattern and pattern.search(topic))


def _list_topics(source: KafkaSource) -> set[str]:
    return {*(source.topics or ()), *(source.partitions or ())}


def _spell_offsets(position: dict[str, Any], gone: list[str]) -> str:
    kept = {topic: numbers for topic, numbers in position.items() if topic not in gone}
    return str(kept).replace("'", "") if kept else "none of them is read any more"


def _tell(name: str) -> str:
    return "The source" if name == ONLY_SOURCE else f"The source {name}"
