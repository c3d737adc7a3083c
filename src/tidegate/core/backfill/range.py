"""A range of a source, as it is there now, and its slices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

OffsetRange = dict[str, dict[str, tuple[int, int]]]
"""From an offset on and up to, not including, another, by topic and partition."""


@dataclass(frozen=True)
class KafkaRange:
    """Some offsets of some partitions."""

    offsets: OffsetRange
    kind: Literal["kafka"] = "kafka"

    @property
    def size(self) -> int:
        """How many offsets it spans: records, and the gaps that transactions and compaction leave."""
        return sum(end - start for _, _, start, end in self._list_parts())

    def split(self, slices: int) -> list[KafkaRange]:
        """Cut the range into slices of about the same size, none of them empty."""
        edges = _cut(self.size, slices)
        return [self._take(start, end) for start, end in edges]

    def describe(self) -> str:
        """Say the range in a few words."""
        partitions = sum(len(numbers) for numbers in self.offsets.values())
        return f"{self.size:,} offsets of {count(partitions, 'partition')}"

    def to_sql(self, prefix: str = "_") -> str:
        """Spell which rows of a table came from it, by columns that begin with a prefix."""
        return " OR ".join(
            f"({prefix}topic = '{topic}' AND {prefix}partition = {number} "
            f"AND {prefix}offset >= {start} AND {prefix}offset < {end})"
            for topic, number, start, end in self._list_parts()
        )

    def _take(self, first: int, last: int) -> KafkaRange:
        """Take what lies between two places, all partitions laid end to end."""
        taken: OffsetRange = {}
        at = 0
        for topic, number, start, end in self._list_parts():
            low, high = max(first, at), min(last, at + end - start)
            if low < high:
                span = (start + low - at, start + high - at)
                taken.setdefault(topic, {})[number] = span
            at += end - start
        return KafkaRange(taken)

    def _list_parts(self) -> Iterator[tuple[str, str, int, int]]:
        for topic, numbers in sorted(self.offsets.items()):
            for number, (start, end) in sorted(numbers.items(), key=lambda item: int(item[0])):
                yield topic, number, start, end


@dataclass(frozen=True)
class DeltaRange:
    """Some versions of a table, the last one included."""

    first: int
    last: int
    kind: Literal["delta"] = "delta"

    @property
    def size(self) -> int:
        """How many versions it spans."""
        return self.last - self.first + 1

    def split(self, slices: int) -> list[DeltaRange]:
        """Cut the range into slices of about the same size, none of them empty."""
        first = self.first
        return [
            DeltaRange(first + start, first + end - 1) for start, end in _cut(self.size, slices)
        ]

    def describe(self) -> str:
        """Say the range in a few words."""
        return f"versions {self.first:,} to {self.last:,}"


@dataclass(frozen=True)
class FilesRange:
    """Some files of a landing zone."""

    paths: tuple[str, ...]
    kind: Literal["files"] = "files"

    @property
    def size(self) -> int:
        """How many files it has."""
        return len(self.paths)

    def split(self, slices: int) -> list[FilesRange]:
        """Cut the range into slices of about the same size, none of them empty."""
        return [FilesRange(self.paths[start:end]) for start, end in _cut(self.size, slices)]

    def describe(self) -> str:
        """Say the range in a few words."""
        return count(self.size, "file")


PLACES = {
    "files": ("_file",),
    "delta": ("_file",),
    "kafka": ("_topic", "_partition", "_offset"),
}
"""The columns that say where a row came from, by the kind of its source."""

Range = Annotated[KafkaRange | DeltaRange | FilesRange, Field(discriminator="kind")]
RANGE: TypeAdapter[Range] = TypeAdapter(Range)


def count(number: int, noun: str) -> str:
    """Say how many there are of something."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _cut(size: int, slices: int) -> list[tuple[int, int]]:
    """Cut a length into parts that differ by one at the most."""
    parts = min(size, slices)
    edges = [size * number // parts for number in range(parts + 1)] if parts else []
    return list(pairwise(edges))
