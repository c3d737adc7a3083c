"""What all ways into a Delta table have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from tidegate.core.deltalog import DeltaLog
from tidegate.core.errors import SinkError
from tidegate.core.ledger import SinkRecord
from tidegate.core.settings import Settings
from tidegate.core.spec.sinks.delta import DeltaSink, SchemaChange
from tidegate.spark.columns import list_absent, pick_fields, refer
from tidegate.spark.sinks.delta.checks import find_changes, find_lacking, raise_all
from tidegate.spark.sinks.delta.transaction import Transaction
from tidegate.spark.sources import first_line

_NO_OPTIONS: Mapping[str, str] = {}


class DeltaWriter(ABC):
    """A Delta table that a query writes to.

    The transaction pair (query id and sink, batch id) goes into the same commit as the rows, so
    that Delta itself passes over a batch it already holds.
    """

    is_observed = True
    uses: ClassVar[dict[str, str]] = {
        "columns": "takes",
        "partition_by": "is laid out by",
        "cluster_by": "is laid out by",
    }
    """The fields of a sink that name columns, and what for."""

    def __init__(
        self,
        sink: DeltaSink,
        settings: Settings,
        policy: SchemaChange = SchemaChange.FAIL,
        *,
        route: str | None = None,
    ) -> None:
        self.sink = sink
        self.name = sink.name
        self.table = sink.table if route is None else f"{sink.table}/{route}"
        self._route = route
        self._adds_columns = policy is not SchemaChange.FAIL
        self.location = settings.locate_url(self.table)
        self._log = DeltaLog(settings.locate(self.table))
        self._version = self._log.find_version()
        self._stored = StructType()

    def prepare(self, session: SparkSession, schema: StructType) -> None:
        """Check, before anything is written, that the table can take the rows."""
        raise_all(self.table, list(self._find_mistakes(session, schema)))

    def read_schema(self, session: SparkSession) -> StructType | None:
        """Read the table's columns; None where it is yet to be created."""
        return None if self._version is None else self.read(session).schema

    def read(self, session: SparkSession) -> DataFrame:
        """Read the table's rows."""
        return session.read.format("delta").load(self.location)

    def write(self, batch: DataFrame, batch_id: int, query_id: str) -> SinkRecord:
        """Write a batch, unless the table holds it already."""
        transaction = Transaction(self.sink.name_writer(query_id, self._route), batch_id)
        if self._version is None:
            self._version = self._log.find_version()  # another may have created it since
        before = self._version
        try:
            self._write(batch, transaction)
        except AnalysisException as error:
            raise SinkError(
                f"The table {self.table} does not take the batch: {first_line(error)}",
                cause=f"Its rows are {batch.schema.simpleString()}.",
                remedy="Cast the columns in the last step, or correct the sink in the spec.",
            ) from error
        self._version = self._log.require_version()
        commit = self._log.find_batches(transaction.app_id, (batch_id,)).get(batch_id)
        if commit is None:
            return SinkRecord(rows=None, version=self._version, is_replay=True)
        is_replay = before is not None and commit.version <= before
        return SinkRecord(rows=commit.rows, version=commit.version, is_replay=is_replay)

    @abstractmethod
    def _write(self, batch: DataFrame, transaction: Transaction) -> None:
        """Bring a batch into the table, by one commit that carries the transaction."""

    def _find_mistakes(self, session: SparkSession, schema: StructType) -> Iterator[SinkError]:
        yield from find_lacking(self.sink, self.uses, schema, self._added)
        if self._version is not None:
            self._stored = self.read(session).schema
            columns = self.sink.columns or schema.fieldNames()
            yield from self._compare(pick_fields(schema, columns), self._stored)

    def _compare(self, rows: StructType, stored: StructType) -> Iterator[SinkError]:
        """Find what keeps a table that exists from taking rows."""
        stored = pick_fields(stored, list_absent(stored.fieldNames(), self._added))
        yield from find_changes(
            self.table, self.location, rows, stored, takes_new=self._adds_columns
        )

    @property
    def _added(self) -> tuple[str, ...]:
        """The columns that the table has beside those of its rows."""
        return ()

    def _pick(self, batch: DataFrame) -> DataFrame:
        """Take the columns that are written, smaller types as the table has them."""
        types = {field.name.lower(): field.dataType for field in self._stored.fields}
        names = self.sink.columns or batch.columns
        return batch.select(
            *(
                column.cast(types[name.lower()]).alias(name) if name.lower() in types else column
                for name, column in zip(names, refer(names), strict=True)
            )
        )

    def _save(
        self,
        rows: DataFrame,
        transaction: Transaction,
        mode: str = "append",
        options: Mapping[str, str] = _NO_OPTIONS,
    ) -> None:
        """Write rows as they are; the first ones create the table."""
        writer = transaction.mark(rows.write.format("delta").mode(mode).options(**options))
        if self._adds_columns:
            writer = writer.option("mergeSchema", "true")
        if self._version is None and self.sink.partition_by:
            writer = writer.partitionBy(*self.sink.partition_by)
        writer.save(self.location)

    def _create_clustered(self, session: SparkSession, schema: StructType) -> None:
        # Any other table is created by its first write, so that a run that fails leaves none; but
        # a write cannot cluster.
        if self._version is None and self.sink.cluster_by:
            fields = [StructField(field.name, field.dataType) for field in schema.fields]
            builder = DeltaTable.createIfNotExists(session).location(self.location)
            builder.addColumns(StructType(fields)).clusterBy(*self.sink.cluster_by).execute()
