"""A mistake in a spec, told by place, what was found and what is allowed."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Self, get_args

from ruamel.yaml import YAML

from tidegate.core.spec.base import SpecModel
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.sink import Sink
from tidegate.core.spec.source import Source
from tidegate.core.spec.transform import StaticTable, Step

Place = tuple[str | int, ...]


def _collect_models(annotation: Any) -> dict[str, type[SpecModel]]:
    """Map a union's tags to its models."""
    if isinstance(annotation, type) and issubclass(annotation, SpecModel):
        fields = annotation.model_fields
        tag = get_args(fields["type"].annotation)[0] if "type" in fields else next(iter(fields))
        return {tag: annotation}
    found: dict[str, type[SpecModel]] = {}
    for argument in get_args(annotation):
        found |= _collect_models(argument)
    return found


# Where in a place pydantic puts a union's tag, which the file does not have as a key.
_UNIONS = {
    "source": (1, _collect_models(Source)),
    "tables": (2, _collect_models(StaticTable)),
    "transform": (2, _collect_models(Step)),
    "sinks": (2, _collect_models(Sink)),
}


@dataclass(frozen=True)
class Mistake:
    """One mistake in a spec."""

    place: Place
    kind: str
    message: str
    found: Any
    model: type[SpecModel]
    """The part of a spec that the place is in."""

    @classmethod
    def from_pydantic(cls, detail: Any) -> Self:
        """Take over one of pydantic's errors."""
        place: Place = detail["loc"]
        model: type[SpecModel] = Pipeline
        tag_at, models = _UNIONS.get(str(place[0]) if place else "", (len(place), {}))
        if len(place) > tag_at:
            tag = str(place[tag_at])
            model = models.get(tag) or next(iter(models.values()))
            if tag in models:
                place = (*place[:tag_at], *place[tag_at + 1 :])
        message = detail["msg"].removeprefix("Value error, ")
        return cls(place, detail["type"], message, detail["input"], model)

    def describe(self, text: str) -> str:
        """Say it: place, what was found, what is allowed."""
        where = spell_place(self.place, text)
        match self.kind:
            case "extra_forbidden":
                return f"{where}: unknown key; {self._suggest_key()}"
            case "missing":
                return f"{where}: is required and missing"
            case "union_tag_not_found":
                return f"{where}: type is required and missing; {self._list_tags()}"
            case "union_tag_invalid":
                return f"{where}: type is {self.found.get('type')!r}; {self._list_tags()}"
        is_shown = isinstance(self.found, str | int | float | bool)
        return f"{where}: {self.message}{f'; found {self.found!r}' if is_shown else ''}"

    def _suggest_key(self) -> str:
        allowed = sorted(field.alias or name for name, field in self.model.model_fields.items())
        close = get_close_matches(str(self.place[-1]), allowed, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        return f"{hint}allowed are {', '.join(allowed)}"

    def _list_tags(self) -> str:
        _, models = _UNIONS[str(self.place[0])]
        return f"allowed are {', '.join(sorted(models))}"


def drop_echoes(mistakes: list[Mistake]) -> list[Mistake]:
    """Drop a list's 'too short' where it is short only because its items are wrong."""
    inner = {mistake.place[:-1] for mistake in mistakes} | {m.place[:-2] for m in mistakes}
    return [m for m in mistakes if m.kind != "too_short" or m.place not in inner]


def spell_place(place: Place, text: str) -> str:
    """Spell a place as a person would, with its line in the file."""
    spelled = ""
    for part in place:
        spelled += f"[{part}]" if isinstance(part, int) else f".{part}" if spelled else str(part)
    line = _find_line(place, text)
    return (spelled or "pipeline") + (f" (line {line})" if line else "")


def _find_line(place: Place, text: str) -> int | None:
    # The quick parser keeps no lines; this one is only for files that have a mistake.
    node: Any = YAML(typ="rt").load(text)
    line: int | None = None
    for part in place:
        try:
            positions = node.lc.data
            line = positions[part][0] + 1
            node = node[part]
        except (AttributeError, KeyError, IndexError, TypeError):
            break
    return line
