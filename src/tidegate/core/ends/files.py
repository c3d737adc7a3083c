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
from tidegate.core.errors import BlockedError, SourceError
from tidegate.core.spec.files import FilesSource
from tidegate.core.storage import is_local

# What fsspec's file systems call the time of the last change.
_MODIFIED_KEYS = ("LastModified", "last_modified", "mtime", "updated", "created")
_PATTERN = frozenset("*?[]{}\\")


@dataclass(frozen=True, slots=True)
class LandedFile:
    """A file that is in the landing zone."""

    path: str
    modified_ms: int


@dataclass(frozen=True)
class Backlog:
    """The files a run has to commit, and those that Spark will not read."""

    paths: tuple[str, ...]
    too_old: int = 0
    overwritten: int = 0
    lost: tuple[str, ...] = ()
    """Taken into a batch that is not committed, and no longer there."""


def list_landing(folder: UPath, source: FilesSource, *, was_read: bool = False) -> list[LandedFile]:
    """List what Spark would list: no hidden files, and nested folders only where asked for."""
    if not folder.is_dir():
        if was_read and not is_local(folder):
            return []  # an object store has no empty folders: all its files were taken away
        raise SourceError(
            f"The landing zone {folder} {'is a file' if folder.exists() else 'does not exist'}.",
            remedy="Create the folder, or correct source.path in the spec.",
        )
    try:
        found = [
            (parents, name, file)
            for parents, name, file in (
                _walk_local(str(folder)) if is_local(folder) else _walk(folder)
            )
            if not any(map(_is_hidden, (*parents, name)))
        ]
    except OSError as error:
        raise SourceError(
            f"The landing zone {folder} cannot be listed: {error}.",
            remedy="Mend the folder (a link that leads back, a right that is missing), then retry.",
        ) from error
    # Without recursion Spark reads the folder's own files, unless it finds key=value folders: these
    # are partitions, and then it reads everything.
    is_deep = source.recursive or any("=" in part for parents, _, _ in found for part in parents)
    return [
        file
        for parents, name, file in found
        if (is_deep or not parents) and (source.glob is None or _matches(name, source.glob))
    ]


def find_backlog(
    landed: Iterable[LandedFile],
    logged: Iterable[LoggedFile],
    *,
    committed_offset: int,
    max_age_ms: int,
) -> Backlog:
    """Tell which files are still to be committed: logged but not committed, or not yet logged."""
    landed, logged = list(landed), list(logged)
    # A file is forgotten once it is older than the newest one by more than the age.
    horizon = max((file.modified_ms for file in logged), default=max_age_ms) - max_age_ms
    seen = {file.path: file.modified_ms for file in logged if file.modified_ms >= horizon}
    forgotten = {file.path for file in logged} - seen.keys()
    started = dict.fromkeys(file.path for file in logged if file.log_offset > committed_offset)
    waiting, too_old, overwritten = [], 0, 0
    for file in landed:
        if file.path in seen:
            overwritten += file.path not in started and file.modified_ms > seen[file.path]
        elif file.modified_ms >= horizon:
            waiting.append(file.path)
        else:
            too_old += file.path not in forgotten
    paths = started | dict.fromkeys(sorted(waiting))
    lost = started.keys() - {file.path for file in landed}
    return Backlog(tuple(paths), too_old, overwritten, tuple(sorted(lost)))


def refuse_patterns(paths: Iterable[str], root: str) -> None:
    """Refuse files whose names Spark takes for patterns: it would read others of the batch twice."""
    named = [path for path in paths if _PATTERN & set(path.removeprefix(root))]
    if named:
        raise BlockedError(
            f"{len(named):,} files have one of * ? [ ] {{ }} \\ in their names, such as {named[0]}.",
            code="file_names",
            cause="Spark takes such a name for a pattern and reads other files of its batch twice.",
            remedy="Rename them.",
        )


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
        known = (detail.get(key) for key in _MODIFIED_KEYS)
        modified = next((value for value in known if value is not None), 0)
        seconds = modified.timestamp() if hasattr(modified, "timestamp") else float(modified)
        yield tuple(parents), name, LandedFile(path, int(seconds * 1000))
