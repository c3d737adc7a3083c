"""`${VAR}` and `${VAR:-default}` in a spec's values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Place = tuple[str | int, ...]

_REFERENCE = re.compile(r"\$\$|\$\{(?P<inner>[^{}]*)\}|\$\{")
_INNER = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)
_MOST_VALUES = 10_000


def expand(value: Any, environment: Mapping[str, str]) -> tuple[Any, list[tuple[Place, str]]]:
    """Fill in the references in every string; return the value, and what was wrong by place."""
    expander = _Expander(environment)
    return expander.expand(value), expander.problems


class _Expander:
    """Fills in the references of one spec, and keeps what was wrong with them by place."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._seen = 0
        self.problems: list[tuple[Place, str]] = []

    def expand(self, value: Any, at: Place = ()) -> Any:
        """Fill in the references in every string of a value."""
        self._seen += 1
        if self._seen > _MOST_VALUES:
            # A few aliases of aliases can stand for more values than there is memory.
            raise ValueError(f"it stands for more than {_MOST_VALUES:,} values")
        if isinstance(value, str):
            return _REFERENCE.sub(lambda match: self._replace(match, at), value)
        if isinstance(value, dict):
            return {key: self.expand(item, (*at, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.expand(item, (*at, index)) for index, item in enumerate(value)]
        return value

    def _replace(self, match: re.Match[str], at: Place) -> str:
        if match[0] == "$$":
            return "$"
        inner = _INNER.fullmatch(match["inner"] or "")
        if not inner:
            self.problems.append((at, f"{match[0]!r} is not ${{VAR}} or ${{VAR:-default}}"))
            return ""
        found = self._environment.get(inner["name"])
        if inner["default"] is not None:
            return found or inner["default"]  # as shells have it: empty counts as not set
        if found is None:
            name = inner["name"]
            self.problems.append(
                (at, f"the variable {name} is not set; set it, or write ${{{name}:-default}}")
            )
        return found or ""
