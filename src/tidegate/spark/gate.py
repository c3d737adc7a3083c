"""Rules that rows are held against, and what becomes of those that fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from tidegate.core.errors import ExpectationError, TransformError
from tidegate.core.passage import Passage
from tidegate.core.spec.expectation import Expectation, OnFail
from tidegate.spark.columns import quote, refer, spell_content
from tidegate.spark.sources import first_line

FAILED = "__tidegate_failed"
"""The column of the labels of the rules that a row does not meet."""

_TOTAL = "__tidegate_total"
_KEPT = "__tidegate_kept"
_ASIDE = "__tidegate_aside"
_PLACE = ("_topic", "_partition", "_offset", "_file")


@dataclass(frozen=True)
class Gate:
    """The rules of a pipeline, or of one of its sinks."""

    rules: tuple[Expectation, ...]
    sink: str | None = None

    @property
    def puts_aside(self) -> bool:
        """Whether a row may be quarantined."""
        return any(rule.on_fail is OnFail.QUARANTINE for rule in self.rules)

    @property
    def has_shares(self) -> bool:
        """Whether all rows must be counted before any is written."""
        return any(rule.fail_above is not None for rule in self.rules)

    @property
    def may_stop(self) -> bool:
        """Whether a rule may refuse the whole batch."""
        return self.has_shares or any(rule.on_fail is OnFail.FAIL for rule in self.rules)

    def check(self, rows: DataFrame, where: str | None = None) -> None:
        """Refuse rules and a condition that are no SQL on these rows, all at once."""
        problems = [f"where: {told}" for told in _find_problem(rows, where)]
        for rule in self.rules:
            problems += [f"{rule.label}: {told}" for told in _find_problem(rows, _spell(rule))]
        if problems:
            place = f"the sink {self.sink}" if self.sink else "expect"
            raise TransformError(
                f"In {place}, {'; '.join(problems)}",
                cause=f"The rows have the columns {', '.join(rows.columns)}.",
                remedy="Correct the spec.",
            )

    def mark(self, rows: DataFrame) -> DataFrame:
        """Add which rules a row fails; stop at one that must not."""
        if not self.rules:
            return rows
        failing = [F.when(_fails(rule, rows), F.lit(rule.label)) for rule in self.rules]
        labels = F.filter(F.array(*failing), lambda label: label.isNotNull())
        marked = rows.withColumn(FAILED, labels)
        fatal = self._list_labels(OnFail.FAIL)
        return _stop_at(marked, fatal) if fatal else marked

    def list_counts(self, *, audits: bool = False) -> dict[str, Column]:
        """List what is counted: all rows, those that fail each rule, and what becomes of all."""
        if not self.rules:
            all_rows = dict.fromkeys((_TOTAL, _KEPT), F.lit(True))
            return all_rows | {_ASIDE: F.lit(False)} if audits else {}
        counts = {rule.label: F.array_contains(FAILED, rule.label) for rule in self.rules}
        counts[_TOTAL] = F.lit(True)
        if audits:
            counts[_KEPT] = ~_fails_any(self._list_labels(OnFail.DROP, OnFail.QUARANTINE))
            counts[_ASIDE] = _fails_any(self._list_labels(OnFail.QUARANTINE))
        return counts

    @staticmethod
    def audit(counts: Mapping[str, int]) -> Passage:
        """Tell what became of all rows, where that was counted."""
        return Passage(counts[_TOTAL], counts[_KEPT], counts[_ASIDE])

    def keep(self, marked: DataFrame) -> DataFrame:
        """Keep the rows that go on."""
        if not self.rules:
            return marked
        leaving = self._list_labels(OnFail.DROP, OnFail.QUARANTINE)
        return marked.where(~_fails_any(leaving)).drop(FAILED)

    def put_aside(self, marked: DataFrame) -> DataFrame:
        """Find the rows to be quarantined."""
        return marked.where(_fails_any(self._list_labels(OnFail.QUARANTINE)))

    def judge(self, counts: Mapping[str, int]) -> None:
        """Refuse a batch of which too many rows fail a rule."""
        total = counts.get(_TOTAL, 0)
        problems = [
            f"{rule.label} fails for {counts[rule.label]:,} of {total:,} rows, above "
            f"{rule.fail_above:.2%}"
            for rule in self.rules
            if rule.fail_above is not None and counts[rule.label] > rule.fail_above * total
        ]
        if problems:
            raise ExpectationError(
                f"The batch is refused: {'; '.join(problems)}.",
                cause="Nothing of it was written.",
                remedy="Correct the data, the steps or the rule; the next run takes the batch again.",
            )

    def report(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Tell how many rows failed each rule, by names that are unique in a pipeline."""
        prefix = f"{self.sink}." if self.sink else ""
        return {f"{prefix}{rule.label}": counts.get(rule.label, 0) for rule in self.rules}

    def count_aside(self, counts: Mapping[str, int]) -> int:
        """Count failures that put rows aside; a row that fails two rules counts twice."""
        return sum(counts.get(label, 0) for label in self._list_labels(OnFail.QUARANTINE))

    def name_rule(self) -> Column:
        """Name the rule that puts a row aside: of several, the first."""
        labels = F.array(*map(F.lit, self._list_labels(OnFail.QUARANTINE)))
        return F.element_at(F.array_intersect(FAILED, labels), 1)

    def explain(self) -> Column:
        """Say in words why a row failed."""
        told = [
            F.when(F.array_contains(FAILED, rule.label), F.lit(_describe(rule)))
            for rule in self.rules
        ]
        return F.concat_ws("; ", *told)

    def _list_labels(self, *kinds: OnFail) -> list[str]:
        return [rule.label for rule in self.rules if rule.on_fail in kinds]


def _fails_any(labels: list[str]) -> Column:
    return F.arrays_overlap(FAILED, F.array(*map(F.lit, labels)).cast("array<string>"))


def _fails(rule: Expectation, rows: DataFrame) -> Column:
    if not rule.unique:
        return ~F.coalesce(F.expr(_spell(rule)), F.lit(False))
    # Ordered by content, so that a replay in another order lets the same row go on.
    by = Window.partitionBy(*refer(rule.unique)).orderBy(spell_content(rows.columns))
    number = F.row_number().over(by)
    return (number > 1) & F.expr(_spell(rule))


def _spell(rule: Expectation) -> str:
    """Spell a rule as a condition; of unique, the part that one row can tell."""
    if rule.check:
        return f"({rule.check})"
    columns = rule.not_null or rule.unique or ()
    return " AND ".join(f"{quote(column)} IS NOT NULL" for column in columns)


def _describe(rule: Expectation) -> str:
    if rule.check:
        return f"not {rule.check}"
    columns = ", ".join(rule.not_null or rule.unique or ())
    return f"{columns} must not be null" if rule.not_null else f"{columns} is not unique"


def _stop_at(marked: DataFrame, labels: list[str]) -> DataFrame:
    # Never the row itself: messages are kept where nobody expects what is in it.
    failed = F.array_join(F.array_intersect(FAILED, F.array(*map(F.lit, labels))), ", ")
    told = F.concat(F.lit("tidegate: a row fails "), failed, _tell_place(marked), F.lit("."))
    return marked.where(F.when(_fails_any(labels), F.raise_error(told)).isNull())


def _tell_place(rows: DataFrame) -> Column:
    """Say where a row came from, as far as it still tells."""
    place = [name for name in _PLACE if name in rows.columns]
    spelled = (
        F.concat(F.lit(f"{name} "), F.coalesce(F.col(name).cast("string"), F.lit("?")))
        for name in place
    )
    return F.concat(F.lit(": "), F.concat_ws(", ", *spelled)) if place else F.lit("")


def _find_problem(rows: DataFrame, condition: str | None) -> list[str]:
    if condition is None:
        return []
    try:
        kind = rows.select(F.expr(condition)).schema.fields[0].dataType.simpleString()
    except (AnalysisException, ParseException) as error:
        return [first_line(error)]
    return [] if kind == "boolean" else [f"{condition} is {kind}, not true or false."]
