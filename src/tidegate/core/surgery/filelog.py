"""Setting the file source's own log back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from upath import UPath

from tidegate.core.checkpoint.lines import parse_object, read_lines, read_number
from tidegate.core.storage import list_names

_COMPACT = ".compact"
_INTERVAL = 10


def plan_file_log(
    checkpoint: UPath, source: str, log_offset: int
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Say which files to write and to delete, so that a log ends at an offset.

    A compacted file holds all entries before it. Where it reaches too far it is deleted, and what it
    held up to the offset is written anew as Spark would have.
    """
    folder = checkpoint / "sources" / source
    names = [name for name in list_names(folder) if _number(name) is not None]
    kept = {name for name in names if _rank(name) <= log_offset}
    gone = tuple(f"sources/{source}/{name}" for name in names if name not in kept)
    lines = _collect(folder, names)
    base = (log_offset + 1) // _INTERVAL * _INTERVAL - 1
    needed = {f"{base}{_COMPACT}"} if base >= 0 else set()
    needed |= {str(number) for number in range(base + 1, log_offset + 1)}
    writes = {
        f"sources/{source}/{name}": _spell(lines, name).encode() for name in sorted(needed - kept)
    }
    return writes, gone


def _collect(folder: UPath, names: list[str]) -> Mapping[int, list[str]]:
    """Collect the entries of all files by their offset, as Spark spelled them."""
    found: dict[int, list[str]] = {}
    for name in names:
        for number, line in _read_entries(folder / name):
            lines = found.setdefault(number, [])
            if line not in lines:
                lines.append(line)
    return found


def _read_entries(file: UPath) -> Iterator[tuple[int, str]]:
    _, lines = read_lines(file, newest_version=1)
    for line in lines:
        number = read_number(str(file), parse_object(str(file), line), "batchId")
        if number is not None:
            yield number, line


def _spell(lines: Mapping[int, list[str]], name: str) -> str:
    last = _rank(name)
    first = 0 if name.endswith(_COMPACT) else last
    chosen = (line for number in range(first, last + 1) for line in lines.get(number, []))
    return "\n".join(["v1", *chosen])


def _number(name: str) -> int | None:
    digits = name.removesuffix(_COMPACT)
    return int(digits) if digits.isascii() and digits.isdigit() else None


def _rank(name: str) -> int:
    number = _number(name)
    return -1 if number is None else number
