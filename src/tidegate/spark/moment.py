"""The time of a batch, in place of the clock's.

A streaming query takes "now" from its offset log, so that a batch that is run again gives the same rows.
Rows that are made within a batch would ask the clock, each time anew: one that is read twice could pass
a rule and fail it, and one that is sent again would be another row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import UTC, datetime
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame

_INSTANTS = frozenset({"CurrentTimestamp", "Now"})
_PATTERN = "CURRENT_LIKE"


def pin_time(rows: DataFrame, batch_ms: int | None) -> DataFrame:
    """Let "now" be the time of the batch, wherever the rows' making asks for it."""
    session, frame = rows.sparkSession, rows._jdf  # noqa: SLF001
    plan = frame.queryExecution().analyzed()
    jvm = session.sparkContext._jvm  # noqa: SLF001
    if jvm is None or batch_ms is None:
        return rows
    pattern = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    if not plan.containsPattern(getattr(pattern, _PATTERN)()):
        return rows
    zone = ZoneInfo(session.conf.get("spark.sql.session.timeZone") or "UTC")
    pinned = plan.transformUpWithSubqueries(_EachNode(_Clock(jvm, batch_ms, zone)))
    made = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, pinned)  # noqa: SLF001
    return DataFrame(made, session)


class _Rewrite(ABC):
    """What Spark calls for each part of a plan, to be given what takes its place."""

    @abstractmethod
    def find(self, part: JavaObject) -> JavaObject | None:
        """Find what takes the place of a part; None where it stays as it is."""

    def isDefinedAt(self, part: JavaObject) -> bool:  # noqa: N802
        """Say whether a part is replaced."""
        return self.find(part) is not None

    def apply(self, part: JavaObject) -> JavaObject:
        """Give what takes the place of a part."""
        return self.find(part) or part

    def applyOrElse(self, part: JavaObject, _: Any) -> JavaObject:  # noqa: N802
        """Give what takes the place of a part, or the part itself."""
        return self.find(part) or part

    class Java:
        """What py4j needs to know."""

        implements: ClassVar[list[str]] = ["scala.PartialFunction"]


class _EachNode(_Rewrite):
    """Has the expressions of every node rewritten."""

    def __init__(self, expressions: _Rewrite) -> None:
        self._expressions = expressions

    def find(self, part: JavaObject) -> JavaObject | None:
        """Rewrite a node's expressions."""
        node: JavaObject = part.transformExpressions(self._expressions)
        return node


class _Clock(_Rewrite):
    """Gives the time of a batch for each expression that asks for the present."""

    def __init__(self, jvm: Any, batch_ms: int, zone: ZoneInfo) -> None:
        self._jvm = jvm
        self._batch_ms = batch_ms
        self._local = datetime.fromtimestamp(batch_ms / 1000, UTC).astimezone(zone)

    def find(self, part: JavaObject) -> JavaObject | None:
        """Find the time that an expression asks for."""
        kind = part.getClass().getSimpleName()
        time = self._jvm.java.time
        text = self._local.replace(tzinfo=None).isoformat(timespec="microseconds")
        if kind in _INSTANTS:
            return self._make_literal(time.Instant.ofEpochMilli(self._batch_ms))
        if kind == "LocalTimestamp":
            return self._make_literal(time.LocalDateTime.parse(text))
        if kind == "CurrentDate":
            return self._make_literal(time.LocalDate.parse(text[:10]))
        return None

    def _make_literal(self, value: JavaObject) -> JavaObject:
        companion = getattr(self._jvm.org.apache.spark.sql.catalyst.expressions, "Literal$")
        literal: JavaObject = getattr(companion, "MODULE$").apply(value)
        return literal
