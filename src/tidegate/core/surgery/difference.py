"""How two checkpoints differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from upath import UPath

from tidegate.core.checkpoint.log import list_batches, read_batch_offsets
from tidegate.core.checkpoint.position import describe_position
from tidegate.core.checkpoint.progress import Progress, read_progress
from tidegate.core.checkpoint.statelog import list_state, read_operators


@dataclass(frozen=True)
class Difference:
    """One thing in which two checkpoints differ."""

    what: str
    first: str
    second: str


def compare_checkpoints(first: UPath, second: UPath) -> list[Difference]:
    """Find in what two checkpoints differ."""
    one, other = _list_facts(first), _list_facts(second)
    names = dict.fromkeys([*one, *other])
    pairs = (Difference(name, one.get(name, "-"), other.get(name, "-")) for name in names)
    return [pair for pair in pairs if pair.first != pair.second]


def _list_facts(checkpoint: UPath) -> dict[str, str]:
    progress = read_progress(checkpoint)
    facts = {
        "state": progress.state.value,
        "query id": _spell(progress.query_id),
        "committed batch": _spell(progress.committed_batch),
        "planned batch": _spell(progress.planned_batch),
        "watermark, ms": _spell(progress.watermark_ms),
    }
    facts |= dict(_list_positions(progress))
    facts["batches kept"] = _spell_range(list_batches(checkpoint / "commits"))
    for operator in read_operators(checkpoint, list_state(checkpoint)):
        stores = ", ".join(f"{count} of {name}" for name, count in operator.partitions.items())
        facts[f"operator {operator.number}"] = f"{operator.name} ({stores})"
    if progress.planned_batch is not None and progress.is_readable:
        planned = read_batch_offsets(checkpoint, progress.planned_batch)
        facts |= {key: str(value) for key, value in (planned.conf if planned else {}).items()}
    return facts


def _list_positions(progress: Progress) -> Iterator[tuple[str, str]]:
    for source in progress.sources:
        yield f"source {source.source}, committed", describe_position(source.committed)
        if source.planned != source.committed:
            yield f"source {source.source}, planned", describe_position(source.planned)


def _spell(value: Any) -> str:
    return "-" if value is None else str(value)


def _spell_range(batches: set[int]) -> str:
    return f"{min(batches)} to {max(batches)}" if batches else "none"
