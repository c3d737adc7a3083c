"""What is done with one batch: steps, sinks, quarantine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from tidegate.core.ledger import SinkRecord
from tidegate.spark.sinks.delta import DeltaAppend
from tidegate.spark.sinks.writer import SinkWriter
from tidegate.spark.values.decoding import MALFORMED

_COUNT = "malformed"


@dataclass(frozen=True)
class BatchResult:
    """What a batch did to its sinks, and how many values it put aside."""

    sinks: dict[str, SinkRecord]
    quarantined: int = 0


@dataclass(frozen=True)
class BatchWriter:
    """Writes batches, each exactly once."""

    run_id: str
    sinks: list[SinkWriter]
    prepare: Callable[[DataFrame], DataFrame] = lambda rows: rows
    """What is left to be done with the rows before they are written."""
    quarantine: DeltaAppend | None = None
    """Where values that do not parse are kept."""
    read_malformed: Callable[[int], DataFrame] | None = None
    """Reads what did not parse in a batch, where its rows no longer tell."""

    def write(self, batch: DataFrame, batch_id: int, query_id: str) -> BatchResult:
        """Write a batch to every sink; a sink that has it already passes it over."""
        if self.quarantine is None:
            return BatchResult(self._write_sinks(batch, batch_id, query_id))
        if self.read_malformed is not None:
            records = self._write_sinks(batch, batch_id, query_id)
            malformed = self.read_malformed(batch_id)
            count = malformed.count()
        else:
            # Counted while the rows are written; values are read again only if some are put aside.
            seen = Observation()
            observed = batch.observe(seen, F.count(MALFORMED).alias(_COUNT))
            good = observed.where(F.col(MALFORMED).isNull()).drop(MALFORMED)
            records = self._write_sinks(good, batch_id, query_id)
            malformed = batch.where(F.col(MALFORMED).isNotNull())
            was_counted = any(
                sink.is_observed and not records[sink.name].is_replay for sink in self.sinks
            )
            count = seen.get[_COUNT] if was_counted else malformed.count()
        if count:
            self.quarantine.write(self._label(malformed, batch_id), batch_id, query_id)
        return BatchResult(records, count)

    def _write_sinks(self, rows: DataFrame, batch_id: int, query_id: str) -> dict[str, SinkRecord]:
        prepared = self.prepare(rows)
        return {sink.name: sink.write(prepared, batch_id, query_id) for sink in self.sinks}

    def _label(self, malformed: DataFrame, batch_id: int) -> DataFrame:
        return malformed.select(
            f"{MALFORMED}.*",
            F.lit("malformed").alias("rule"),
            F.lit(self.run_id).alias("run_id"),
            F.lit(batch_id).cast("long").alias("batch_id"),
            F.current_timestamp().alias("quarantined_at"),
        )
