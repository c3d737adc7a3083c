"""A mistake in a spec, told by place, what was found and what is allowed."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Self, get_args

from tidegate.core.spec.base import SpecModel
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.sinks.sink import Sink
from tidegate.core.spec.source import Source
from tidegate.core.spec.transform import StaticTable, Step
from tidegate.core.spec.yaml import load_yaml_with_lines

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
    "sources": (2, _collect_models(Source)),
    "tables": (2, _collect_models(StaticTable)),
    "transform": (2, _collect_models(Step)),
    "sinks": (2, _collect_models(Sink)),
}
# Pydantic's words for these are about Python.
_PLAIN_WORDS = {
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "model_attributes_type": "must be a mapping",
    "string_type": "must be a text",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "too_short": "must have at least one item",
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
    def from_pydantic(cls, detail: Any, raw: Any) -> Self:
        """Take over one of pydantic's errors, with what the file itself has at that place."""
        place: Place = tuple(part for part in detail["loc"] if part != "[key]")
        model = _find_part(Pipeline, place[:-1])
        tag_at, models = _UNIONS.get(str(place[0]) if place else "", (len(place), {}))
        if len(place) > tag_at:
            tag = str(place[tag_at])
            model = models.get(tag) or next(iter(models.values()))
            if tag in models and len(models) > 1:
                place = (*place[:tag_at], *place[tag_at + 1 :])
                model = _find_part(model, place[tag_at:-1])
        message = detail["msg"].removeprefix("Value error, ")
        is_key = "[key]" in detail["loc"]
        found = place[-1] if is_key else _find_value(place, raw, default=detail["input"])
        return cls(place, detail["type"], message, found, model)

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
            case "conflict" | "step":
                return f"{where}: {self.message}"
        return f"{where}: {_PLAIN_WORDS.get(self.kind, self.message)}; found {self._tell_found()}"

    def _tell_found(self) -> str:
        # What is inside a list or a mapping is not told: an option may hold a secret.
        if self.found is None:
            return "nothing"
        if isinstance(self.found, dict):
            return "a mapping"
        return "a list" if isinstance(self.found, list) else repr(self.found)

    def _suggest_key(self) -> str:
        allowed = sorted(field.alias or name for name, field in self.model.model_fields.items())
        close = get_close_matches(str(self.place[-1]), allowed, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        return f"{hint}allowed are {', '.join(allowed)}"

    def _list_tags(self) -> str:
        _, models = _UNIONS[str(self.place[0])]
        return f"allowed are {', '.join(sorted(models))}"


def _find_part(model: type[SpecModel], place: Place) -> type[SpecModel]:
    """Go down into the parts of a part, as far as they are models of their own."""
    for name in place:
        if isinstance(name, int):
            continue  # an item of a list
        field = model.model_fields.get(name)
        models = list(_collect_models(field.annotation).values()) if field else []
        if len(models) != 1:
            break
        model = models[0]
    return model


def drop_echoes(mistakes: list[Mistake]) -> list[Mistake]:
    """Drop a list's 'too short' where it is short only because its items are wrong."""
    outer = {m.place[:end] for m in mistakes for end in range(len(m.place))}
    return [m for m in mistakes if m.kind != "too_short" or m.place not in outer]


def spell_place(place: Place, text: str) -> str:
    """Spell a place as a person would, with its line in the file."""
    spelled = ""
    for part in place:
        spelled += f"[{part}]" if isinstance(part, int) else f".{part}" if spelled else str(part)
    line = _find_line(place, text)
    return (spelled or "pipeline") + (f" (line {line})" if line else "")


def _find_line(place: Place, text: str) -> int | None:
    node = _load_with_lines(text)
    line: int | None = None
    for part in place:
        if isinstance(part, int) and isinstance(node, dict) and part not in node:
            continue  # one step may stand where a list of steps is allowed
        try:
            line = node.lc.data[part][0] + 1
            node = node[part]
        except (AttributeError, KeyError, IndexError, TypeError):
            break
    return line


@lru_cache(maxsize=4)
def _load_with_lines(text: str) -> Any:
    # The quick parser keeps no lines; this one is only for files that have a mistake.
    try:
        return load_yaml_with_lines(text)
    except Exception:
        # The file was read before; what only this parser stumbles over costs no more than a line.
        return None


def _find_value(place: Place, raw: Any, default: Any) -> Any:
    value = raw
    for part in place:
        if isinstance(part, int) and isinstance(value, dict) and part not in value:
            continue
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return default
    return value
