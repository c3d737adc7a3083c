"""What a pipeline reads and writes, named as OpenLineage's naming specification does.

Spark's own listener names files and tables by the same rules, so that what a pipeline writes is what
the next one reads, whoever tells of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.connection import KafkaConnection, ReadConnection
from tidegate.core.database import DatabaseConnection
from tidegate.core.deltatable import DeltaRows
from tidegate.core.ledger import BatchRecord, SinkRecord, add_up
from tidegate.core.settings import Settings
from tidegate.core.spec.files import FilesSource
from tidegate.core.spec.kafka import KafkaSource
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.schema import parse_columns
from tidegate.core.spec.sinks.delta import DeltaSink
from tidegate.core.spec.sinks.files import FilesSink
from tidegate.core.spec.sinks.jdbc import JdbcSink
from tidegate.core.spec.sinks.kafka import KafkaSink
from tidegate.core.spec.source import DeltaSource
from tidegate.core.spec.transform import StaticDelta, StaticFiles

_CANONICAL = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "wasb": "wasbs"}
_OBJECT_STORES = frozenset({"s3", "gs", "abfss", "wasbs"})
_KAFKA_PORT, _POSTGRES_PORT = "9092", "5432"


@dataclass(frozen=True)
class Column:
    """A column of a dataset."""

    name: str
    type: str | None = None
    """None where the spec alone knows it."""


@dataclass(frozen=True)
class Dataset:
    """A topic, a folder or a table."""

    namespace: str
    name: str
    columns: tuple[Column, ...] = ()
    rows: int | None = None
    """How many rows a run wrote to it; None where nobody counted."""
    version: int | None = None


@dataclass(frozen=True)
class Lineage:
    """From where to where rows went."""

    inputs: tuple[Dataset, ...] = ()
    outputs: tuple[Dataset, ...] = ()


def name_location(url: str) -> Dataset:
    """Name a folder or a table by its location, as Spark spells it."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return Dataset("file", "/" + url.removeprefix("file:").strip("/"))
    scheme = _CANONICAL.get(scheme, scheme)
    authority, _, path = rest.partition("/")
    root = "" if scheme in _OBJECT_STORES else "/"
    return Dataset(f"{scheme}://{authority}", root + path.strip("/") or "/")


def name_topic(connection: KafkaConnection, topic: str) -> Dataset:
    """Name a topic by the first server of its cluster."""
    server = connection.options["bootstrap.servers"].partition(",")[0].rpartition("://")[2].strip()
    return Dataset(f"kafka://{_add_port(server, _KAFKA_PORT)}", topic)


def name_table(connection: DatabaseConnection, table: str) -> Dataset:
    """Name a database's table."""
    options = connection.options
    host, port = options["host"].partition(",")[0], options.get("port", "").partition(",")[0]
    qualified = table if "." in table else f"public.{table}"
    return Dataset(
        f"postgres://{host}:{port or _POSTGRES_PORT}", f"{options['dbname']}.{qualified}"
    )


def _add_port(server: str, port: str) -> str:
    return server if server.rpartition(":")[2].isdigit() else f"{server}:{port}"


@dataclass(frozen=True)
class Surveyor:
    """Finds what a pipeline reads and writes."""

    pipeline: Pipeline
    settings: Settings
    read: ReadConnection

    def survey(self, batches: Sequence[BatchRecord] = ()) -> Lineage:
        """Find from where to where rows go, and how many went there by some batches."""
        return Lineage(tuple(self.list_inputs()), tuple(self.list_outputs(batches)))

    def survey_replay(self) -> Lineage:
        """Find the same for what was put aside and is taken up again."""
        return Lineage((self._name_aside(),), tuple(self.list_outputs()))

    def list_inputs(self) -> Iterator[Dataset]:
        """List what is read; of a source that Spark alone knows, nothing can be told."""
        for name, source in self.pipeline.inputs.items():
            match source:
                case KafkaSource():
                    yield from self._list_topics(name, source)
                case DeltaSource() | FilesSource():
                    yield self._name_place(source)
        for table in self.pipeline.tables.values():
            yield self._name_place(table)

    def list_outputs(self, batches: Sequence[BatchRecord] = ()) -> Iterator[Dataset]:
        """List what is written; of a function or a format of Spark's, nothing can be told."""
        for sink in self.pipeline.sinks:
            written = [batch.sinks[sink.name] for batch in batches if sink.name in batch.sinks]
            match sink:
                case DeltaSink() | FilesSink():
                    yield _count(self._name_place(sink), written)
                case JdbcSink():
                    options = self.read(sink.connection)
                    connection = DatabaseConnection.from_options(sink.connection, options)
                    yield _count(name_table(connection, sink.table), written)
                case KafkaSink():
                    yield _count(name_topic(self._connect(sink), sink.topic), written)
        aside = add_up(batch.quarantined for batch in batches)
        if self.pipeline.quarantines and aside != 0:
            yield replace(self._name_aside(), rows=aside)

    def _name_aside(self) -> Dataset:
        return self._name_place(self.pipeline.quarantine_sink)

    def _name_place(
        self, place: DeltaSource | DeltaSink | StaticDelta | FilesSource | FilesSink | StaticFiles
    ) -> Dataset:
        if isinstance(place, DeltaSource | DeltaSink | StaticDelta):
            columns = self._read_columns(place.table)
            return replace(name_location(self.settings.locate_url(place.table)), columns=columns)
        columns = _list_columns(getattr(place, "file_schema", None))
        return replace(name_location(self.settings.locate_url(place.path)), columns=columns)

    def _read_columns(self, table: str) -> tuple[Column, ...]:
        try:
            rows = DeltaRows.open(self.settings.locate(table))
        except Exception:
            return ()  # its name is known all the same
        return tuple(Column(*pair) for pair in rows.columns.items()) if rows else ()

    def _list_topics(self, name: str, source: KafkaSource) -> Iterator[Dataset]:
        topics: Iterable[Any] = source.topics or source.partitions or ()
        if source.topic_pattern:
            # Which ones match, the checkpoint knows.
            progress = read_progress(self.settings.checkpoint_of(self.pipeline.name))
            topics = progress.find_committed(name) or ()
        columns = _list_columns(source.value.value_schema)
        for topic in sorted(topics):
            yield replace(name_topic(self._connect(source), topic), columns=columns)

    def _connect(self, end: KafkaSource | KafkaSink) -> KafkaConnection:
        return KafkaConnection.from_options(end.connection, self.read(end.connection))


def _list_columns(ddl: str | None) -> tuple[Column, ...]:
    return tuple(map(Column, parse_columns(ddl))) if ddl else ()


def _count(dataset: Dataset, written: Sequence[SinkRecord]) -> Dataset:
    versions = [record.version for record in written if record.version is not None]
    rows = add_up(record.rows for record in written) if written else None
    return replace(dataset, rows=rows, version=max(versions, default=None))
