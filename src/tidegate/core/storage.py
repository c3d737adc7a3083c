"""Files on any store: local paths, and every URL that fsspec knows."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

from upath import UPath

from tidegate.core.errors import SettingsError

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


def write_json(path: UPath, value: Any) -> None:
    """Write JSON so that a reader sees the old file or the new one, never a part."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, default=str) + "\n")


def write_text(path: UPath, text: str) -> None:
    """Write text so that a reader sees the old file or the new one, never a part."""
    if not is_local(path):
        path.write_text(text)  # object stores publish an object whole
        return
    target = Path(str(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def read_json(path: UPath) -> Any | None:
    """Read JSON, or None where there is no such file."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None
