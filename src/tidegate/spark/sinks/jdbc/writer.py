"""Writing to a table of a database, each batch exactly once.

Executors copy their rows to a staging table. Then the driver, in one transaction, notes the batch in
the table `tidegate_batches` and moves the rows to where they belong; so a batch that comes again is
found there and passed over, whoever writes it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tidegate.core.connection import read_connection
from tidegate.core.database import DatabaseConnection
from tidegate.core.errors import SinkAwayError
from tidegate.core.ledger import SinkRecord
from tidegate.core.spec.sinks.jdbc import JdbcSink
from tidegate.spark.sinks.jdbc.copy import OUTCOME, unpack
from tidegate.spark.sinks.jdbc.dialect import Dialect, Held, Mark, Staging
from tidegate.spark.sinks.jdbc.postgres import Postgres


class JdbcWriter:
    """A table that a query writes to."""

    is_observed = True
    heals = False
    """Whether a row takes the place of one that is just as new: by a backfill, of its own."""

    def __init__(self, sink: JdbcSink) -> None:
        self.sink = sink
        self.name = sink.name
        options = read_connection(sink.connection)
        connection = DatabaseConnection.from_options(sink.connection, options)
        self._database: Dialect = Postgres(connection, sink)

    def prepare(self, session: SparkSession, schema: StructType) -> None:  # noqa: ARG002
        """Check, before anything is written, that the table can take the rows."""
        self._database.check(schema)

    def read_schema(self, session: SparkSession) -> StructType | None:  # noqa: ARG002
        """Read the table's columns; None where it is yet to be created."""
        return self._database.read_schema()

    def write(self, batch: DataFrame, batch_id: int, query_id: str) -> SinkRecord:
        """Write a batch, unless the database has it already."""
        mark = Mark(query_id, self.name, batch_id)
        try:
            return self._write_once(batch, mark)
        except SinkAwayError:
            # It may have restarted. Nothing is in the table, or the mark tells that all is.
            return self._write_once(batch, mark)

    def _write_once(self, batch: DataFrame, mark: Mark) -> SinkRecord:
        staging = self._database.begin(batch.schema, mark)
        if isinstance(staging, Held):
            return _tell_replay(staging)
        is_committed = False
        try:
            counts = self._stage(batch, staging)
            changed = self._database.commit(
                staging, mark, counts.keys(), sum(counts.values()), heals=self.heals
            )
            is_committed = not isinstance(changed, Held)
        finally:
            if not is_committed:
                self._database.clean(staging)
        if isinstance(changed, Held):
            return _tell_replay(changed)
        return SinkRecord(rows=changed, version=None)

    def _stage(self, batch: DataFrame, staging: Staging) -> dict[int, int]:
        """Let the executors fill the staging; how many rows came by each task."""
        shaped = batch.select(*self._database.shape(batch.schema))
        outcomes = shaped.mapInArrow(self._database.open_copy(staging), OUTCOME).collect()
        errors = [unpack(outcome.error) for outcome in outcomes if outcome.error]
        if errors:
            # One that no retry mends tells more than those that follow from it.
            raise min(errors, key=lambda error: isinstance(error, SinkAwayError))
        return {outcome.task: outcome.rows for outcome in outcomes}


def _tell_replay(held: Held) -> SinkRecord:
    return SinkRecord(rows=held.rows, version=None, is_replay=True)
