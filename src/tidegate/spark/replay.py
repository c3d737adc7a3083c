"""Taking up again what was put aside: through the same rules into the same sinks.

Values that did not parse are decoded once more and go through the steps; rows that broke a rule have
been through them. What fails again is put aside again, under the replay's own name. Only then are the
old ones deleted, so that at no moment a row is nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from tidegate.core.errors import ReplayError
from tidegate.core.lease import Lease, hold_lease
from tidegate.core.quarantine import Choice
from tidegate.core.replay import Replay, ReplayResult, Replays
from tidegate.core.settings import Settings
from tidegate.core.spec.expectation import MALFORMED_RULE
from tidegate.core.spec.pipeline import Pipeline
from tidegate.spark.batch import BatchWriter
from tidegate.spark.conflict import insist
from tidegate.spark.gate import Gate
from tidegate.spark.kafka import KafkaReader
from tidegate.spark.query import OpenQuery, Query
from tidegate.spark.session import open_session
from tidegate.spark.sources import first_line

_PARSED = "__tidegate_parsed"
_CORRUPT = "__tidegate_corrupt"
_COMMIT = ("run_id", "batch_id", "sink")
_IDENTITY = (*_COMMIT, "rule", "topic", "partition", "offset", "file", "row")


def replay_quarantine(pipeline: Pipeline, settings: Settings, replay_id: str) -> None:
    """Carry out a replay that was written down, or what is left of it."""
    replays = Replays(pipeline, settings)
    with hold_lease(replays.lease, replay_id, seconds=settings.lease_seconds) as lease:
        replay = replays.read(replay_id)
        if replay.result:
            return
        replays.refuse_backfill()
        session = open_session(pipeline)
        query = Query(pipeline, settings, replay.id, accepts_loss=False).open(session)
        result = _Replaying(pipeline, settings, replay, session, query, lease).run()
        lease.check()
        replays.finish(replay, result)


@dataclass(frozen=True)
class _Part:
    """Rows that are written in the same way."""

    rows: DataFrame
    writer: BatchWriter


@dataclass(frozen=True)
class _Replaying:
    pipeline: Pipeline
    settings: Settings
    replay: Replay
    session: SparkSession
    query: OpenQuery
    lease: Lease

    def run(self) -> ReplayResult:
        parts = list(self._split())
        unfit = self._find_unfit()
        written: dict[str, int | None] = {}
        put_aside = 0
        # Numbered as batches of a query of its own, by which sinks know what they have already.
        for number, part in enumerate(parts):
            result = insist(partial(part.writer.write, part.rows, number, self.replay.id))
            put_aside += result.quarantined
            for name, record in result.sinks.items():
                known = written.get(name, 0)
                is_told = known is not None and record.rows is not None
                written[name] = (known or 0) + (record.rows or 0) if is_told else None
        if not unfit.isEmpty():
            quarantine = self.query.writer.quarantine
            put_aside += quarantine.write([unfit], len(parts), self.replay.id) or 0
        self.lease.check()
        insist(self._delete_old)
        return ReplayResult(written, put_aside)

    @cached_property
    def _taken(self) -> DataFrame:
        """What was chosen and is still there: a backfill may have judged some of it anew since."""
        there = self._open().select(*_IDENTITY).distinct().alias("there")
        is_same = F.lit(True)
        for column in _IDENTITY:
            is_same &= F.col(f"chosen.{column}").eqNullSafe(F.col(f"there.{column}"))
        return self._chosen.alias("chosen").join(there, is_same, "left_semi")

    def _open(self) -> DataFrame:
        return self.session.read.format("delta").load(self._location)

    @cached_property
    def _chosen(self) -> DataFrame:
        reader = self.session.read.format("delta").option("versionAsOf", self.replay.version)
        try:
            rows = reader.load(self._location).where(_spell(self.replay.choice))
            rows.isEmpty()
        except AnalysisException as error:
            raise ReplayError(
                f"Version {self.replay.version} of {self._location} cannot be read any more: "
                f"{first_line(error)}",
                cause="A replay that was begun long ago was not finished, and the table was cleaned.",
                remedy="Restore the table's files from a backup.",
            ) from error
        return rows

    @property
    def _location(self) -> str:
        return self.settings.locate_url(self.pipeline.quarantine_sink.table)

    def _split(self) -> Iterator[_Part]:
        # Of all that was chosen, so that parts have the same numbers however often this is begun.
        kinds = Counter(
            (row.rule, row.sink) for row in self._chosen.select("rule", "sink").collect()
        )
        sinks = sorted({sink for _, sink in kinds if sink is not None})
        self._refuse_lost(sinks)
        writer = replace(
            self.query.writer, remembers=False, adds_batch=False, check=self.lease.check
        )
        if (MALFORMED_RULE, None) in kinds:
            yield _Part(self._decode(), replace(writer, prepare=self.query.finish))
        if any(sink is None and rule != MALFORMED_RULE for rule, sink in kinds):
            yield _Part(self._parse(F.col("sink").isNull()), writer)
        for sink in sinks:
            # What the rules of all sinks let through has only its own sink's ahead of it.
            outlets = tuple(o for o in writer.outlets if o.writer.name == sink)
            own = replace(writer, gate=Gate(()), outlets=outlets)
            yield _Part(self._parse(F.col("sink") == sink), own)

    def _refuse_lost(self, sinks: list[str]) -> None:
        known = [sink.name for sink in self.pipeline.sinks]
        lost = [sink for sink in sinks if sink not in known]
        if lost:
            raise ReplayError(
                f"Rows were put aside by rules of {', '.join(lost)}, and {self.pipeline.name} has no "
                "such sink any more.",
                remedy="Choose others by --rule, or bring the sink back.",
            )

    def _decode(self) -> DataFrame:
        """Decode values that did not parse by what the spec says now."""
        if self.pipeline.puts_records_aside:
            raise ReplayError(
                f"Records of files that {self.pipeline.name} put aside cannot be taken up by "
                "themselves.",
                cause="What they lack is not known: files are read by Spark as a whole.",
                remedy="Read them by 'tidegate quarantine show --json', mend them and land them in "
                "a new file; choose others by --rule.",
            )
        if self.query.remembers or self.pipeline.sources or not self.pipeline.kafka_inputs:
            raise ReplayError(
                f"The values that {self.pipeline.name} put aside cannot be taken up by themselves.",
                cause="Its steps remember rows or join sources, and see only what comes in order.",
                remedy="Correct the values and send them again; choose others by --rule.",
            )
        (source,) = self.pipeline.kafka_inputs.values()
        records = self._taken.where(F.col("rule") == MALFORMED_RULE)
        headers = "array<struct<key: string, value: binary>>"
        records = records.withColumn("headers", F.lit(None).cast(headers))
        return KafkaReader(source, self.settings, accepts_loss=False).decode(records)

    def _parse(self, which: Column) -> DataFrame:
        return self._read_rows().where(which & self._fits).select(f"{_PARSED}.*").drop(_CORRUPT)

    def _find_unfit(self) -> DataFrame:
        """Find rows that are not what the steps give now."""
        reason = F.concat(F.col("reason"), F.lit("; its columns have other types by now"))
        unfit = self._read_rows().where(~self._fits).withColumn("reason", reason)
        return unfit.drop(_PARSED, "run_id", "batch_id", "quarantined_at")

    def _read_rows(self) -> DataFrame:
        schema = StructType([*self.query.shape.fields, StructField(_CORRUPT, StringType())])
        options = {"columnNameOfCorruptRecord": _CORRUPT}
        rows = self._taken.where(F.col("rule") != MALFORMED_RULE)
        return rows.withColumn(_PARSED, F.from_json("row", schema, options))

    @property
    def _fits(self) -> Column:
        parsed = F.col(_PARSED)
        return parsed.isNotNull() & parsed.getField(_CORRUPT).isNull()

    def _delete_old(self) -> None:
        # What a batch put aside for a sink is one commit, so that it is known as a whole or not at all.
        taken = self._chosen.select(*_COMMIT).distinct().alias("taken")
        is_same = F.lit(True)
        for column in _COMMIT:
            is_same &= F.col(f"old.{column}").eqNullSafe(F.col(f"taken.{column}"))
        table = DeltaTable.forPath(self.session, self._location).alias("old")
        chosen = _spell(self.replay.choice, "old.")
        table.merge(taken, is_same).whenMatchedDelete(chosen).execute()


def _spell(choice: Choice, side: str = "") -> Column:
    condition = F.lit(True)
    if choice.rule is not None:
        condition &= F.col(f"{side}rule") == choice.rule
    if choice.run_id is not None:
        condition &= F.col(f"{side}run_id") == choice.run_id
    if choice.since is not None:
        condition &= F.col(f"{side}quarantined_at") >= F.lit(choice.since)
    if choice.until is not None:
        condition &= F.col(f"{side}quarantined_at") < F.lit(choice.until)
    return condition
