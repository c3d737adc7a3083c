"""The files in a landing zone, and which of them Spark has yet to read.

Follows Spark's FileStreamSource to the letter, since a file that the plan counts and Spark passes
over would leave a run short of its target for ever.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from upath import UPath

from tidegate.core.checkpoint.filelog import LoggedFile
from tidegate.core.errors import SourceError
from tidegate.core.spec.source import FilesSource
from tidegate.core.storage import is_local

_PARTITION = re.compile(r"[^=]+=.*")


@dataclass(frozen=True, slots=True)
class LandedFile:
    """A file that is in the landing zone."""

    path: str
    modified_ms: int


@dataclass(frozen=True)
class Backlog:
    """The files a run has to commit, and those that Spark will never read."""

    paths: tuple[str, ...]
    too_old: int = 0


def list_landing(folder: UPath, source: FilesSource) -> list[LandedFile]:
    """List what Spark would list: no hidden files, and nested folders only where asked for."""
    if not folder.is_dir():
        raise SourceError(
            f"The landing zone {folder} does not exist.",
            remedy="Create the folder, or correct source.path in the spec.",
        )
    return [
        file
        for parents, name, file in (_walk_local(str(folder)) if is_local(folder) else _walk(folder))
        if _is_listed(parents, name, source)
    ]


def find_backlog(
    landed: Iterable[LandedFile],
    logged: Iterable[LoggedFile],
    *,
    committed_offset: int,
    max_age_ms: int,
) -> Backlog:
    """Tell which files are still to be committed: logged but not committed, or not yet logged."""
    logged = list(logged)
    horizon = max((file.modified_ms for file in logged), default=max_age_ms) - max_age_ms
    seen = {file.path for file in logged if file.modified_ms >= horizon}
    fresh = [file for file in landed if file.path not in seen]
    started = [file.path for file in logged if file.log_offset > committed_offset]
    waiting = [file.path for file in fresh if file.modified_ms >= horizon]
    known_old = {file.path for file in logged if file.modified_ms < horizon}
    too_old = sum(file.modified_ms < horizon and file.path not in known_old for file in fresh)
    return Backlog(tuple(dict.fromkeys([*started, *sorted(waiting)])), too_old)


def _is_listed(parents: tuple[str, ...], name: str, source: FilesSource) -> bool:
    if any(map(_is_hidden, (*parents, name))):
        return False
    # Without recursion Spark still follows key=value folders: they are partitions.
    is_in_reach = source.recursive or all(_PARTITION.fullmatch(parent) for parent in parents)
    return is_in_reach and (source.glob is None or _matches(name, source.glob))


def _is_hidden(name: str) -> bool:
    if name.startswith(("_common_metadata", "_metadata")):
        return False
    if name.endswith("._COPYING_"):
        return True
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _matches(name: str, glob: str) -> bool:
    """Match like Hadoop's globs, which also know `{a,b}` and negate by `[^…]`."""
    opening = re.search(r"\{([^{}]*)\}", glob)
    if opening:
        choices = (
            glob[: opening.start()] + choice + glob[opening.end() :]
            for choice in opening[1].split(",")
        )
        return any(_matches(name, choice) for choice in choices)
    return fnmatchcase(name, glob.replace("[^", "[!"))


def _walk_local(root: str) -> Iterator[tuple[tuple[str, ...], str, LandedFile]]:
    pending: list[tuple[str, tuple[str, ...]]] = [(root, ())]
    while pending:
        folder, parents = pending.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir():
                    pending.append((entry.path, (*parents, entry.name)))
                    continue
                try:
                    modified_ms = entry.stat().st_mtime_ns // 1_000_000
                except FileNotFoundError:
                    continue  # taken away since the listing
                yield parents, entry.name, LandedFile(entry.path, modified_ms)


def _walk(folder: UPath) -> Iterator[tuple[tuple[str, ...], str, LandedFile]]:
    root = folder.path.rstrip("/") + "/"
    for path, detail in folder.fs.find(folder.path, detail=True, refresh=True).items():
        *parents, name = path.removeprefix(root).split("/")
        modified = detail.get("LastModified") or detail.get("mtime") or detail.get("created")
        seconds = modified.timestamp() if hasattr(modified, "timestamp") else float(modified or 0)
        yield tuple(parents), name, LandedFile(path, int(seconds * 1000))
