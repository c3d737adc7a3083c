"""A range of a source as rows, decoded as the stream decodes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from tidegate.core.backfill.range import DeltaRange, FilesRange, KafkaRange, Range
from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import BackfillError
from tidegate.core.settings import Settings
from tidegate.core.spec.files import PROVENANCE, FilesSource
from tidegate.core.spec.kafka import KafkaSource
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.source import DeltaSource
from tidegate.core.storage import spell_for_spark
from tidegate.spark.files import FilesReader
from tidegate.spark.kafka import KafkaReader
from tidegate.spark.sources import tell_file


def read_range(
    session: SparkSession, pipeline: Pipeline, settings: Settings, part: Range
) -> DataFrame:
    """Read a range of a pipeline's only source."""
    match (pipeline.source, part):
        case (KafkaSource() as source, KafkaRange(offsets)):
            start = {t: {n: span[0] for n, span in ns.items()} for t, ns in offsets.items()}
            end = {t: {n: span[1] for n, span in ns.items()} for t, ns in offsets.items()}
            reader = KafkaReader(source, settings, accepts_loss=False)
            return reader.read_range(session, start, end)
        case (FilesSource() as source, FilesRange(paths)):
            urls = tuple(spell_for_spark(path) for path in paths)
            return replace(FilesReader(source, settings), urls=urls).read(session)
        case (DeltaSource() as source, DeltaRange(first, last)):
            location = settings.locate_url(source.table)
            return tell_file(_read_versions(session, source, location, first, last), source)
    raise AssertionError((pipeline.source, part))


def spell_where(
    session: SparkSession, pipeline: Pipeline, settings: Settings, part: Range, prefix: str = "_"
) -> str:
    """Spell which rows of a table came from a range, by columns that begin with a prefix."""
    match part:
        case KafkaRange():
            return part.to_sql(prefix)
        case FilesRange(paths):
            urls = [spell_for_spark(path) for path in paths]
            files = session.read.format("binaryFile").load(urls).select("_metadata.file_path")
            return _spell_files(files, prefix)
        case DeltaRange():
            # Of Parquet, this reads how many rows there are and nothing else.
            rows = read_range(session, pipeline, settings, part)
            return _spell_files(rows.select(PROVENANCE[0]).distinct(), prefix)


def _spell_files(files: DataFrame, prefix: str) -> str:
    names = sorted(str(row[0]).replace("'", "\\'") for row in files.collect())
    listed = ", ".join(f"'{name}'" for name in names)
    return f"{prefix}file IN ({listed})" if names else "false"


def find_rearranged(settings: Settings, source: DeltaSource, first: int) -> dict[str, int]:
    """Find the files that rows of a version or later ones were moved to, and by which version."""
    log = DeltaLog(settings.locate(source.table))
    versions = range(first, log.require_version() + 1)
    return {
        path.rpartition("/")[2]: version
        for version in versions
        for path in log.read_change(version).rearranged
    }


def _read_versions(
    session: SparkSession, source: DeltaSource, location: str, first: int, last: int
) -> DataFrame:
    """Read what some versions brought, as a stream of the table would."""
    if source.change_data_feed:
        reader = session.read.format("delta").option("readChangeFeed", "true")
        return reader.options(startingVersion=first, endingVersion=last).load(location)
    jvm: Any = session._jvm  # noqa: SLF001
    # Delta makes rows of whatever session is the active one, and views of another are not theirs.
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)  # noqa: SLF001
    none = jvm.scala.Option.empty()
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, location)  # noqa: SLF001
    added = jvm.java.util.ArrayList()
    changes = log.getChanges(first, last, none, False)
    while changes.hasNext():
        change = changes.next()
        files = _list_added(change._2(), int(change._1()), source)  # noqa: SLF001
        for file in files:
            added.add(file)
    files = jvm.scala.jdk.javaapi.CollectionConverters.asScala(added).toSeq()
    snapshot = log.getSnapshotAt(last, none, none, False)
    frame = log.createDataFrame(snapshot, files, False, none)
    return DataFrame(frame, session)


def _list_added(actions: Any, version: int, source: DeltaSource) -> list[Any]:
    """List the files that a version added; refuse one that changed rows, as the stream does."""
    added, removes = [], False
    each = actions.iterator()
    while each.hasNext():
        action = each.next()
        kind = action.getClass().getSimpleName()
        if kind == "AddFile" and action.dataChange():
            added.append(action)
        removes = removes or (kind == "RemoveFile" and action.dataChange())
    if not removes:
        return added
    if source.skip_change_commits:
        return []
    raise BackfillError(
        f"version {version} of {source.table} changed or deleted rows, which a stream of it refuses "
        "too; say skip_change_commits or change_data_feed in the source"
    )
