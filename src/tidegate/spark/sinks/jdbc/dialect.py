"""What the sink asks of a kind of database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import Column
from pyspark.sql.types import StructType

from tidegate.spark.sinks.jdbc.layout import Layout


@dataclass(frozen=True)
class Mark:
    """By which a batch is known to the database."""

    query_id: str
    sink: str
    batch_id: int


@dataclass(frozen=True)
class Held:
    """A batch, or a later one, that the database has already."""

    rows: int | None
    """How many rows the batch wrote; None where a later one is the newest."""


@dataclass(frozen=True)
class Staging:
    """A table that a batch's rows wait in until they are committed together."""

    layout: Layout
    name: str


class Dialect(Protocol):
    """A database of some kind, with the table that a sink writes."""

    def check(self, rows: StructType) -> None:
        """Refuse rows that the table could not take, telling all that is wrong."""

    def read_schema(self) -> StructType | None:
        """Read the table's columns; None where it is yet to be created."""

    def begin(self, rows: StructType, mark: Mark) -> Staging | Held:
        """Make room for a batch's rows, unless the database has them."""

    def shape(self, rows: StructType) -> list[Column]:
        """Spell the columns as the staging takes them."""

    def open_copy(self, staging: Staging) -> Callable[[Iterator[Any]], Iterator[Any]]:
        """Make the function by which executors fill the staging, for mapInArrow."""

    def commit(
        self, staging: Staging, mark: Mark, tasks: Collection[int], rows: int, *, heals: bool
    ) -> Held | int:
        """Write what tasks staged and the batch's mark in one transaction; how many rows changed."""

    def clean(self, staging: Staging) -> None:
        """Drop a staging that is of no use any more, if that can be done now."""
