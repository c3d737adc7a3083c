"""What all of Spark's log files share: a version line, then JSON lines."""

from __future__ import annotations

import json
from typing import Any

from upath import UPath

from tidegate.core.errors import CorruptLogError, UnsupportedLogError
from tidegate.core.storage import read_bytes

_MOST_DIGITS = 4  # of a version; anything longer is newer than all that is known


def read_lines(file: UPath, *, newest_version: int) -> tuple[int, list[str]]:
    """Read a log file as its version and the lines after it."""
    return split_lines(str(file), read_text(file), newest_version=newest_version)


def read_text(file: UPath) -> str:
    """Read a log file as text."""
    try:
        return read_bytes(file).decode("utf-8")
    except IsADirectoryError:
        raise corrupt(str(file), "it is a folder") from None
    except UnicodeDecodeError as error:
        raise corrupt(str(file), "it is not UTF-8 text") from error


def split_lines(file: str, text: str, *, newest_version: int) -> tuple[int, list[str]]:
    """Split a log file's text into its version and the lines after it."""
    first, *rest = text.removesuffix("\n").split("\n")
    return check_version(file, first.strip(), newest=newest_version), rest


def check_version(file: str, line: str, *, newest: int) -> int:
    """Parse a version line such as `v1`, refusing what this release does not know."""
    if not line:
        raise corrupt(file, "it is empty")
    digits = line[1:]
    if not line.startswith("v") or not digits.isascii() or not digits.isdigit():
        raise corrupt(file, f"its first line is {line[:20]!r}, not a version such as 'v1'")
    if len(digits) > _MOST_DIGITS or int(digits) > newest:
        raise UnsupportedLogError(
            f"{file} has version {digits[:20]}; this release reads up to {newest}.",
            cause="A newer Spark wrote it.",
            remedy="Upgrade tidegate.",
        )
    if int(digits) < 1:
        raise corrupt(file, f"its version is {int(digits)}")
    return int(digits)


def parse_json(file: str, line: str) -> Any:
    """Parse one line of JSON."""
    try:
        return json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise corrupt(file, f"{line[:40]!r} is not JSON") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def parse_object(file: str, line: str) -> dict[str, Any]:
    """Parse one line that holds a JSON object."""
    value = parse_json(file, line)
    if not isinstance(value, dict):
        raise corrupt(file, f"{line[:40]!r} is not a JSON object")
    return value


def read_number(file: str, body: dict[str, Any], key: str) -> int | None:
    """Take an optional whole number out of a parsed object."""
    value = body.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise corrupt(file, f"{key} is {str(value)[:40]!r}, not a whole number")
    return value


def corrupt(file: str, what: str) -> CorruptLogError:
    """Name a broken file and what is broken in it."""
    return CorruptLogError(
        f"{file} is corrupt: {what}.",
        remedy="Do not restart the query; restore the checkpoint from a backup first.",
    )
