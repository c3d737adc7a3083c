"""The file source's own log, `sources/N/`: which file was given which log offset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from upath import UPath

from tidegate.core.checkpoint.lines import corrupt, parse_object, read_lines
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


def read_file_log(checkpoint: UPath, source: str) -> list[LoggedFile]:
    """Read all files a file source has logged: its newest compacted file and what follows it."""
    folder = checkpoint / "sources" / source
    for _ in range(_RELIST_ATTEMPTS):
        try:
            return list(_read_entries(folder))
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


def _read_entries(folder: UPath) -> Iterator[LoggedFile]:
    names = list_names(folder)
    compacted = {_number(name): name for name in names if _is_compact(name)}
    newest_compact = max(compacted, default=-1)
    if newest_compact >= 0:
        yield from _read_file(folder / compacted[newest_compact])
    plain = sorted(int(name) for name in names if name.isascii() and name.isdigit())
    for log_offset in plain:
        if log_offset > newest_compact:
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
        try:
            yield LoggedFile(
                path=strip_scheme(unquote(str(entry["path"]))),
                modified_ms=int(entry["timestamp"]),
                log_offset=int(entry["batchId"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise corrupt(name, f"{line[:60]!r} is not a file entry") from error
