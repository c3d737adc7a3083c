"""Files on any store: local paths, and every URL that fsspec knows."""

from __future__ import annotations

import errno
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

from upath import UPath

from tidegate.core.errors import SettingsError

# Of file systems without hard links, such as object stores that are mounted.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})

_LONGEST_NAME = 200

# Hadoop and fsspec name the same stores differently.
_HADOOP_TO_FSSPEC = {"s3a": "s3", "s3n": "s3", "abfss": "abfs", "wasbs": "abfs"}
_FSSPEC_TO_HADOOP = {"s3": "s3a", "s3n": "s3a", "gcs": "gs", "abfs": "abfss"}


def open_path(location: str | os.PathLike[str]) -> UPath:
    """Turn a local path or a URL, Hadoop's spelling included, into a path that can be read."""
    text = str(location)
    scheme, separator, rest = text.partition("://")
    if separator:
        if scheme == "file":
            return UPath("/" + rest.lstrip("/"))
        try:
            path = UPath(f"{_HADOOP_TO_FSSPEC.get(scheme, scheme)}://{rest}")
            _ = path.fs  # a store's package is loaded only when it is asked for
            return path
        except (ValueError, ImportError, OSError) as error:
            raise SettingsError(
                f"The location {text} cannot be opened: {error}.",
                remedy="Use a local path, or a URL whose fsspec package is installed.",
            ) from error
    if text.startswith("file:/"):
        return UPath("/" + text.removeprefix("file:").lstrip("/"))
    return UPath(Path(text).absolute())


def is_local(path: UPath) -> bool:
    """Whether the path is on this machine's file system."""
    return path.protocol in ("", "file", "local")


def spell_for_spark(location: str) -> str:
    """Spell a location as Spark's Hadoop file systems expect it."""
    scheme, separator, rest = location.partition("://")
    if separator and scheme != "file":
        return f"{_FSSPEC_TO_HADOOP.get(scheme, scheme)}://{rest}"
    # One slash, as Hadoop itself writes it: Delta compares locations as text.
    return f"file:{open_path(location)}"


def spell_name(text: str) -> str:
    """Spell any text as a part of a file's name: readable, and another for every text."""
    quoted = quote(text, safe="+:@")
    if len(quoted) <= _LONGEST_NAME:
        return quoted
    return f"{quoted[:_LONGEST_NAME]}~{sha256(text.encode()).hexdigest()[:16]}"


def list_names(folder: UPath) -> list[str]:
    """List the names in a folder; a folder that does not exist has none."""
    if is_local(folder):
        try:
            return os.listdir(str(folder))  # noqa: PTH208
        except FileNotFoundError:
            return []
    try:
        entries = folder.fs.ls(folder.path, detail=False, refresh=True)
    except FileNotFoundError:
        return []
    own_name = folder.path.rstrip("/")
    names = (entry.rstrip("/") for entry in entries)
    return [name.rpartition("/")[2] for name in names if name != own_name]


def find_files(folder: UPath) -> dict[str, int]:
    """Find all files below a folder: their paths relative to it, and their sizes."""
    if is_local(folder):
        root = Path(str(folder))
        found = {}
        for parent, _, names in os.walk(root):
            for name in names:
                file = Path(parent, name)
                with suppress(FileNotFoundError):  # gone meanwhile
                    found[file.relative_to(root).as_posix()] = file.stat().st_size
        return found
    prefix = folder.path.rstrip("/") + "/"
    folder.fs.invalidate_cache(folder.path)
    entries = folder.fs.find(folder.path, detail=True)
    return {
        path.removeprefix(prefix): int(entry["size"] or 0)
        for path, entry in entries.items()
        if path.startswith(prefix) and not path.endswith("/")
    }


def write_json(path: UPath, value: Any) -> None:
    """Write JSON so that a reader sees the old file or the new one, never a part."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, default=str) + "\n")


@contextmanager
def leave_json(name: str, value: Any) -> Iterator[Path]:
    """Leave JSON for another process, in a file of this user's own, as long as it is needed.

    A command line and the variables of a process can be seen by others; this file cannot.
    """
    with TemporaryDirectory(prefix="tidegate-") as folder:  # for its owner alone
        file = Path(folder) / name
        file.touch(mode=0o600)
        file.write_text(json.dumps(value), encoding="utf-8")
        yield file


def write_text(path: UPath, text: str) -> None:
    """Write text so that a reader sees the old file or the new one, never a part."""
    write_bytes(path, text.encode())


def write_bytes(path: UPath, content: bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part."""
    if not is_local(path):
        path.write_bytes(content)  # object stores publish an object whole
        return
    target = Path(str(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def create_text(path: UPath, text: str) -> bool:
    """Write text to a file that does not exist yet; say whether it did not, and is now this one.

    Of several that do so at the same time just one is told so, on object stores by a put that has
    this condition.
    """
    try:
        if is_local(path):
            _link_new(Path(str(path)), text)
        else:
            path.fs.pipe_file(path.path, text.encode(), mode="create")
    except FileExistsError:
        return False
    return True


def _link_new(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        partial.write_text(text, encoding="utf-8")
        try:
            os.link(partial, target)  # a rename would take the place of a file that is there
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            with target.open("x", encoding="utf-8") as file:
                file.write(text)
    finally:
        partial.unlink(missing_ok=True)


def read_bytes(path: UPath) -> bytes:
    """Read a file whole, by one request."""
    if is_local(path):
        return Path(str(path)).read_bytes()
    # s3fs asks for the size first, unless it may not fetch in parts.
    options = {"max_concurrency": 1} if path.protocol == "s3" else {}
    content: bytes = path.fs.cat_file(path.path, **options)
    return content


def read_json(path: UPath) -> Any | None:
    """Read JSON, or None where there is no such file."""
    try:
        return json.loads(read_bytes(path))
    except FileNotFoundError:
        return None
