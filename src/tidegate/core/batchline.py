"""What a batch did, in one line of a log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tidegate.core.checkpoint.position import SourceKind, classify_position, describe_position
from tidegate.core.ledger import BatchRecord, SinkRecord

_MOST_PARTITIONS = 10


def describe_batch(record: BatchRecord) -> str:
    """Describe a batch: its id, rows, offsets, sinks and seconds."""
    read = "?" if record.input_rows is None else f"{record.input_rows:,}"
    seconds = "?" if record.seconds is None else record.seconds
    places = "; ".join(filter(None, map(_describe_source, record.sources)))
    parts = [
        f"{read} rows read" + (f" ({places})" if places else ""),
        *_list_written(record),
        *_list_aside(record),
        f"{seconds} s",
    ]
    return f"batch {record.batch_id}: {', '.join(parts)}"


def _describe_source(source: Mapping[str, Any]) -> str:
    start, end = source.get("startOffset"), source.get("endOffset")
    if classify_position(end) is not SourceKind.KAFKA:
        return "" if end is None else describe_position(end)
    moved = [
        f"{topic}-{number} {_find_start(start, topic, number):,} to {offset:,}"
        for topic, numbers in (end or {}).items()
        for number, offset in sorted(numbers.items(), key=lambda each: int(each[0]))
        if offset != _find_start(start, topic, number)
    ]
    more = len(moved) - _MOST_PARTITIONS
    return ", ".join(moved[:_MOST_PARTITIONS]) + (f" and {more} more" if more > 0 else "")


def _find_start(start: Any, topic: str, number: str) -> int:
    # A partition that is new begins at 0, as Spark reads it.
    return int(start.get(topic, {}).get(number, 0)) if isinstance(start, Mapping) else 0


def _list_written(record: BatchRecord) -> Iterator[str]:
    is_one = len(record.sinks) == 1
    for name, sink in record.sinks.items():
        yield _describe_sink(name, sink) + ("" if is_one or sink.is_replay else f" of {name}")


def _describe_sink(name: str, sink: SinkRecord) -> str:
    if sink.is_replay:
        return f"{name} already had it"
    rows = "?" if sink.rows is None else f"{sink.rows:,}"
    return f"{rows} rows" + ("" if sink.version is None else f" in v{sink.version}")


def _list_aside(record: BatchRecord) -> Iterator[str]:
    yield from (f"{count:,} fail {rule}" for rule, count in (record.failed or {}).items() if count)
    if record.quarantined:
        yield f"{record.quarantined:,} quarantined"
    if record.metrics and record.metrics.late_rows:
        yield f"at least {record.metrics.late_rows:,} too late and left out"
