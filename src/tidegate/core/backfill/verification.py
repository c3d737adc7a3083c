"""Whether a backfill adds up: what was read against what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from tidegate.core.backfill.book import Backfill, Backfills, SliceResult
from tidegate.core.backfill.request import Mode, is_keyed
from tidegate.core.passage import ALL_SINKS, Passage
from tidegate.core.spec.sinks.sink import Sink


@dataclass(frozen=True)
class SinkAudit:
    """What became of the rows of a range, as far as one sink goes.

    Read, put aside, dropped, left out by the steps and not for the sink leave what it was offered.
    """

    sink: str
    read: int
    put_aside: int
    dropped: int
    """By rules."""
    by_steps: int
    """How many rows the steps left out; below zero where they made more of them."""
    not_for_sink: int
    """By its condition."""
    offered: int
    written: int | None
    """None where the sink does not tell."""
    held: int | None = None
    """How many rows of the range the table has since it was swapped."""


@dataclass(frozen=True)
class Verification:
    """What became of all rows of a range, and what of it is wrong."""

    backfill_id: str
    expected: int | None
    """How many rows the source has in the range, where its log tells."""
    slices: int
    done: int
    seconds: float
    failed: dict[str, int]
    """How many rows failed each rule."""
    sinks: tuple[SinkAudit, ...]
    problems: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Spell it for the ledger."""
        sinks = [asdict(sink) for sink in self.sinks]
        return asdict(self) | {"problems": list(self.problems), "sinks": sinks}


def verify(book: Backfills, backfill: Backfill) -> Verification:
    """Hold what was read against what became of it, and write that down."""
    results = list(book.read_done(backfill.id).values())
    swaps = book.read_swaps(backfill.id)
    sinks = tuple(_audit(sink, results, swaps) for sink in book.pipeline.sinks)
    failed: dict[str, int] = {}
    for result in results:
        for rule, count in result.failed.items():
            failed[rule] = failed.get(rule, 0) + count
    verification = Verification(
        backfill.id,
        backfill.rows,
        len(backfill.slices),
        len(results),
        round(sum(result.seconds for result in results), 3),
        failed,
        sinks,
        tuple(_find_problems(book, backfill, results, sinks)),
    )
    book.record_verification(backfill.id, verification.to_json())
    return verification


def _audit(sink: Sink, results: list[SliceResult], swaps: dict[str, int]) -> SinkAudit:
    read = sum(result.rows_read for result in results)
    malformed = sum(result.malformed for result in results)
    everyone = _add_up(results, ALL_SINKS)
    own = _add_up(results, sink.name)
    written = [result.written.get(sink.name) for result in results]
    return SinkAudit(
        sink.name,
        read,
        put_aside=malformed + everyone.aside + own.aside,
        dropped=everyone.dropped + own.dropped,
        by_steps=read - malformed - everyone.given,
        not_for_sink=everyone.kept - own.given,
        offered=own.kept,
        written=None if None in written else sum(rows or 0 for rows in written),
        held=swaps.get(sink.name),
    )


def _add_up(results: list[SliceResult], sink: str) -> Passage:
    passed = [result.passages.get(sink, Passage(0, 0, 0)) for result in results]
    return Passage(
        sum(one.given for one in passed),
        sum(one.kept for one in passed),
        sum(one.aside for one in passed),
    )


def _find_problems(
    book: Backfills, backfill: Backfill, results: list[SliceResult], sinks: tuple[SinkAudit, ...]
) -> Iterator[str]:
    missing = sorted(set(range(len(backfill.slices))) - {result.number for result in results})
    if missing:
        told = ", ".join(str(number + 1) for number in missing)
        yield f"of {len(backfill.slices)} slices, these are not done: {told}"
    read = sum(result.rows_read for result in results)
    if not missing and backfill.rows is not None and backfill.rows != read:
        yield f"the source has {backfill.rows:,} rows in the range, and {read:,} were read"
    aside = sum(r.malformed + sum(p.aside for p in r.passages.values()) for r in results)
    quarantined = sum(result.quarantined for result in results)
    if aside != quarantined:
        yield f"{aside:,} rows were to be put aside, and the quarantine took {quarantined:,}"
    for sink, audit in zip(book.pipeline.sinks, sinks, strict=True):
        if not is_keyed(sink) and audit.written not in (None, audit.offered):
            yield f"{sink.name} was offered {audit.offered:,} rows and wrote {audit.written:,}"
        if backfill.mode is Mode.REPLACE and not missing and audit.held != audit.written:
            held = "it was not swapped yet" if audit.held is None else f"it has {audit.held:,}"
            yield f"{sink.name} was to have {audit.written:,} rows of the range, and {held}"
