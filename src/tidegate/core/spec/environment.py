"""`${VAR}` and `${VAR:-default}` in a spec's values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_REFERENCE = re.compile(r"\$\$|\$\{(?P<name>[^}:]*)(?P<has_default>:-(?P<default>[^}]*))?\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def expand(
    value: Any, environment: Mapping[str, str], at: tuple[str | int, ...] = ()
) -> tuple[Any, list[tuple[tuple[str | int, ...], str]]]:
    """Fill in references in every string; return the value and the problems by place."""
    problems: list[tuple[tuple[str | int, ...], str]] = []

    def replace(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        name = match["name"]
        if not _NAME.fullmatch(name):
            problems.append((at, f"{match[0]!r} is not ${{VAR}} or ${{VAR:-default}}"))
        elif name in environment:
            return environment[name]
        elif match["has_default"] is None:
            problems.append(
                (at, f"the variable {name} is not set; set it, or write ${{{name}:-default}}")
            )
        return match["default"] or ""

    if isinstance(value, str):
        return _REFERENCE.sub(replace, value), problems
    if isinstance(value, dict):
        items = {key: expand(item, environment, (*at, key)) for key, item in value.items()}
        return {key: item for key, (item, _) in items.items()}, [
            problem for _, found in items.values() for problem in found
        ]
    if isinstance(value, list):
        parts = [expand(item, environment, (*at, index)) for index, item in enumerate(value)]
        return [item for item, _ in parts], [problem for _, found in parts for problem in found]
    return value, problems
