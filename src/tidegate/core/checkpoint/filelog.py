"""The file source's own log, `sources/N/`: which file was given which log offset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from upath import UPath

from tidegate.core.checkpoint.lines import corrupt, parse_object, read_lines, read_number
from tidegate.core.errors import CorruptLogError
from tidegate.core.storage import list_names

_VERSION = 1
_COMPACT = ".compact"
_RELIST_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class LoggedFile:
    """A file that Spark took into a batch, or is about to."""

    path: str
    """As Spark spells it, decoded and without its scheme."""
    modified_ms: int
    log_offset: int


def read_file_log(checkpoint: UPath, source: str, *, up_to: int = -1) -> list[LoggedFile]:
    """Read all files a file source has logged: its newest compacted file and what follows it.

    A log that has a gap, or ends before the offset `up_to`, is corrupt: Spark could not go on.
    """
    folder = checkpoint / "sources" / source
    for _ in range(_RELIST_ATTEMPTS):
        try:
            return list(_read_entries(folder, up_to))
        except FileNotFoundError:
            continue  # compaction removed what the listing still showed
    raise CorruptLogError(
        f"The file log {folder} keeps changing while it is read.",
        cause="Several queries may be using this checkpoint at once.",
        remedy="Stop all but one of them.",
    )


def strip_scheme(url: str) -> str:
    """Drop a file URL's scheme, so that Spark's spelling and fsspec's compare equal."""
    scheme, separator, rest = url.partition(":/")
    if not separator or "/" in scheme:
        return url
    return "/" + rest.lstrip("/") if scheme == "file" else rest.lstrip("/")


def _read_entries(folder: UPath, up_to: int) -> Iterator[LoggedFile]:
    names = list_names(folder)
    compacted = {_number(name): name for name in names if _is_compact(name)}
    newest_compact = max(compacted, default=-1)
    numbers = (int(name) for name in names if name.isascii() and name.isdigit())
    plain = sorted(number for number in numbers if number > newest_compact)
    end = max([newest_compact, up_to, *plain])
    for expected in range(newest_compact + 1, end + 1):
        if expected not in plain:
            raise corrupt(str(folder / str(expected)), "it is missing, and later ones need it")
    if newest_compact >= 0:
        yield from _read_file(folder / compacted[newest_compact])
    for log_offset in plain:
        yield from _read_file(folder / str(log_offset))


def _is_compact(name: str) -> bool:
    number = name.removesuffix(_COMPACT)
    return number != name and number.isascii() and number.isdigit()


def _number(name: str) -> int:
    return int(name.removesuffix(_COMPACT))


def _read_file(file: UPath) -> Iterator[LoggedFile]:
    _, lines = read_lines(file, newest_version=_VERSION)
    name = str(file)
    for line in lines:
        entry = parse_object(name, line)
        path = entry.get("path")
        modified_ms = read_number(name, entry, "timestamp")
        log_offset = read_number(name, entry, "batchId")
        if not isinstance(path, str) or modified_ms is None or log_offset is None:
            raise corrupt(name, f"{line[:60]!r} is not a file entry")
        yield LoggedFile(strip_scheme(unquote(path)), modified_ms, log_offset)
