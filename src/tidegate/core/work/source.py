"""A pipeline's sources, each looked at by its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.core.checkpoint.progress import Progress
from tidegate.core.connection import KafkaConnection, ReadConnection
from tidegate.core.ledger import rank_batch
from tidegate.core.settings import Settings
from tidegate.core.spec.files import FilesSource
from tidegate.core.spec.kafka import KafkaSource
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.source import DeltaSource, RateSource, Source, SparkSource
from tidegate.core.target import BatchTarget, DrainTarget
from tidegate.core.work.delta import find_new_versions
from tidegate.core.work.files import find_new_files
from tidegate.core.work.finding import Finding
from tidegate.core.work.kafka import KafkaWork


@dataclass(frozen=True)
class SourceLook:
    """Looks at the sources of a pipeline, as its next run would find them."""

    pipeline: Pipeline
    settings: Settings
    connect: ReadConnection
    accepts_loss: bool = False

    def look_at(
        self, name: str, source: Source, progress: Progress, known_ids: Mapping[str, str]
    ) -> Finding:
        """Find what waits in one source; raise what keeps it from being read."""
        checkpoint = self.settings.checkpoint_of(self.pipeline.name)
        match source:
            case FilesSource():
                return find_new_files(name, source, self.settings, progress, checkpoint)
            case DeltaSource():
                return find_new_versions(name, source, self.settings, progress, checkpoint)
            case KafkaSource():
                options = self.connect(source.connection)
                connection = KafkaConnection.from_options(source.connection, options)
                return KafkaWork(
                    *(self.pipeline.name, name, source, connection, progress, checkpoint),
                    *(known_ids, self.accepts_loss),
                ).find()
            case SparkSource(format=kind):
                return Finding(
                    f"only Spark knows where a source of format {kind} ends", DrainTarget(name)
                )
            case RateSource():
                batch = rank_batch(progress.committed_batch) + 1
                return Finding("a rate source always has more", BatchTarget(batch))
