"""Avro records walked through without being built: what the executors' Python does, a value at a time.

Avro's own reader believes every length that a value names, so that a few wrong bytes make it ask for
gigabytes and take the whole JVM along; and it stops after the record, whatever follows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tidegate.spark.values.decoded import MISFIT

_FRAME = 5  # bytes before a record that names its schema
_CONTINUES = 0x80  # the bit of a byte after which a number goes on
_LONGEST_NUMBER = 10  # bytes
_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}

Step = Callable[[bytes, int], int]
"""Walks over something that begins at a place, and says where it ends; it may be after the value."""


@dataclass(frozen=True)
class RecordChecker:
    """Finds values that are not one record of a schema from their first byte to their last."""

    reader: str
    writers: Mapping[int, str]
    subject: str

    def find_fault(self, value: bytes | None) -> str | None:
        """Find why a value cannot be read; None where it can."""
        if value is None:
            return None
        if not self.writers:
            return _find_misfit(self._steps[None], value, 0)
        # A zero byte, the schema's id in four bytes, then the record.
        if len(value) < _FRAME or value[0]:
            return "the value names no schema"
        number = int.from_bytes(value[1:_FRAME], "big")
        if number not in self.writers:
            known = ", ".join(map(str, self.writers))
            return f"schema {number} is not one of {self.subject}: {known}"
        return _find_misfit(self._steps[number], value, _FRAME)

    def __getstate__(self) -> dict[str, Any]:
        # Steps are made anew wherever they are needed.
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @cached_property
    def _steps(self) -> Mapping[int | None, Step]:
        texts = [(None, self.reader), *self.writers.items()]
        return {number: plan_walk(json.loads(text)) for number, text in texts}


def _find_misfit(step: Step, value: bytes, at: int) -> str | None:
    try:
        left = len(value) - step(value, at)
    except (IndexError, ValueError, RecursionError):
        return MISFIT
    if left > 0:
        return f"the value goes on for {left:,} bytes after its record"
    return MISFIT if left < 0 else None


def plan_walk(schema: Any) -> Step:
    """Plan how to walk over what a schema describes."""
    return _plan(schema, "", {})


def _plan(schema: Any, space: str, known: dict[str, Step]) -> Step:
    match schema:
        case list():
            return _walk_union([_plan(branch, space, known) for branch in schema])
        case {"type": "record" | "error" | "enum" | "fixed"}:
            return _plan_named(schema, space, known)
        case {"type": "array", "items": items}:
            return _walk_blocks(_plan(items, space, known))
        case {"type": "map", "values": values}:
            return _walk_blocks(_walk_all([_walk_bytes, _plan(values, space, known)]))
        case {"type": inner}:
            return _plan(inner, space, known)
        case "int" | "long":
            return _walk_number
        case "bytes" | "string":
            return _walk_bytes
        case str() if schema in _SIZES:
            return _walk_size(_SIZES[schema])
        case _:
            return known[_join(space, schema)] if _join(space, schema) in known else known[schema]


def _plan_named(schema: Mapping[str, Any], space: str, known: dict[str, Step]) -> Step:
    own, _, _ = schema["name"].rpartition(".")
    space = own or schema.get("namespace", space)
    steps: list[Step] = []
    # Known before its parts are planned, since they may name it.
    step = known[_join(space, schema["name"])] = _walk_all(steps)
    match schema["type"]:
        case "fixed":
            steps.append(_walk_size(schema["size"]))
        case "enum":
            steps.append(_walk_union([_walk_size(0)] * len(schema["symbols"])))
        case _:
            steps += [_plan(field["type"], space, known) for field in schema["fields"]]
    return step


def _join(space: str, name: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _walk_size(size: int) -> Step:
    return lambda _, at: at + size


def _walk_all(steps: list[Step]) -> Step:
    def walk(value: bytes, at: int) -> int:
        for step in steps:
            at = step(value, at)
        return at

    return walk


def _walk_union(branches: list[Step]) -> Step:
    def walk(value: bytes, at: int) -> int:
        number, at = _read_number(value, at)
        if number < 0:
            raise ValueError(number)
        return branches[number](value, at)

    return walk


def _walk_blocks(item: Step) -> Step:
    def walk(value: bytes, at: int) -> int:
        total = 0
        while True:
            count, at = _read_number(value, at)
            if count == 0:
                return at
            if count < 0:
                at = _walk_number(value, at)  # the block's size in bytes
            total += abs(count)
            # So even items that take no bytes, such as nulls, cannot be more than these.
            if total > len(value):
                raise ValueError(total)
            for _ in range(abs(count)):
                at = item(value, at)

    return walk


def _walk_bytes(value: bytes, at: int) -> int:
    size, at = _read_number(value, at)
    if size < 0:
        raise ValueError(size)
    return at + size


def _walk_number(value: bytes, at: int) -> int:
    end = at + _LONGEST_NUMBER
    while value[at] & _CONTINUES:
        at += 1
        if at == end:
            raise ValueError(at)
    return at + 1


def _read_number(value: bytes, at: int) -> tuple[int, int]:
    """Read a zigzag number, and say where it ends."""
    number, end = value[at], at + 1
    if number & _CONTINUES:
        end = _walk_number(value, at)
        number = 0
        for byte in reversed(value[at:end]):
            number = number << 7 | byte & ~_CONTINUES
    return (number >> 1) ^ -(number & 1), end
