"""Reading specs from YAML: one file, one pipeline, all mistakes at once."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml.error import YAMLError

from tidegate.core.errors import SpecError
from tidegate.core.spec.base import NAME_PATTERN
from tidegate.core.spec.environment import expand
from tidegate.core.spec.mistake import Mistake, drop_echoes, spell_place
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.places import Place, list_places
from tidegate.core.spec.yaml import load_yaml

SUFFIXES = (".yaml", ".yml")
_NAME_LINE = re.compile(r"^name:\s*[\"']?([^\s\"'#]+)", re.MULTILINE)


@dataclass(frozen=True)
class LoadedSpec:
    """One spec file: its text, the pipeline in it, and what is wrong with it."""

    file: Path
    text: str
    pipeline: Pipeline | None = None
    """None where the text does not make a pipeline."""
    error: SpecError | None = None
    """None where the pipeline can be run."""

    @property
    def name(self) -> str:
        """The pipeline's name; of a broken spec, the one that it claims."""
        if self.pipeline:
            return self.pipeline.name
        claimed = _NAME_LINE.search(self.text)
        return claimed[1] if claimed else self.file.stem

    def require(self) -> Pipeline:
        """Return the pipeline, or raise what is wrong with it."""
        if self.error or self.pipeline is None:
            raise self.error or SpecError(str(self.file), ("it holds no pipeline",))
        return self.pipeline


def load_specs(folder: Path, environment: Mapping[str, str] | None = None) -> list[LoadedSpec]:
    """Load every spec of a folder; a mistake in one never hides another."""
    if not folder.is_dir():
        raise SpecError(
            str(folder), ("there is no such folder; set TIDEGATE_PIPELINES to the specs' folder",)
        )
    files = sorted(file for file in folder.iterdir() if file.suffix in SUFFIXES)
    return _check_together([_load(file, environment) for file in files])


def load_pipeline(
    folder: Path, name: str, environment: Mapping[str, str] | None = None
) -> LoadedSpec:
    """Load one pipeline by name; only a name that no spec has is an error here."""
    # By convention the file is named after the pipeline: then no other file is read.
    direct = folder / f"{name}.yaml"
    if re.fullmatch(NAME_PATTERN, name) and direct.is_file():
        spec = _load(direct, environment)
        if spec.name == name:
            return spec
    return find_spec(load_specs(folder, environment), folder, name)


def choose_pipelines(folder: Path, name: str | None) -> list[Pipeline]:
    """Load the pipeline of a name, or all whose specs have no mistake."""
    specs = load_specs(folder)
    if name:
        return [find_spec(specs, folder, name).require()]
    return [spec.require() for spec in specs if not spec.error]


def find_spec(specs: list[LoadedSpec], folder: Path, name: str) -> LoadedSpec:
    """Find a pipeline's spec by the name in it, or else by its file's."""
    named = [spec for spec in specs if name in (spec.name, spec.file.stem)]
    if not named:
        known = ", ".join(sorted(spec.name for spec in specs if spec.pipeline)) or "none"
        raise SpecError(str(folder), (f"there is no pipeline {name!r} in it; there are {known}",))
    return next((spec for spec in named if spec.name == name), named[0])


def parse_pipeline(
    text: str, file: str = "<text>", environment: Mapping[str, str] | None = None
) -> Pipeline:
    """Parse one pipeline from YAML, raising all mistakes as one error."""
    try:
        raw = load_yaml(text)
        expanded, unset = expand(raw, os.environ if environment is None else environment)
    except YAMLError as error:
        raise SpecError(file, (_describe_yaml_error(error),)) from None
    except RecursionError:
        raise SpecError(file, ("its values are nested too deeply, or in themselves",)) from None
    except Exception as error:
        # A tag such as !!int makes the parser convert text, and it lets whatever comes of it through.
        raise SpecError(file, (f"a value cannot be read: {error}",)) from None
    if not isinstance(raw, dict):
        found = "nothing" if raw is None else f"a {type(raw).__name__}"
        raise SpecError(file, (f"the file holds {found}; it must hold name:, source:, sinks: …",))
    told = [f"{spell_place(place, text)}: {what}" for place, what in unset]
    pipeline, mistakes = _validate(expanded, raw)
    known = {place for place, _ in unset}
    told += [mistake.describe(text) for mistake in mistakes if mistake.place not in known]
    if pipeline is None or told:
        raise SpecError(file, tuple(told))
    return pipeline


def _validate(expanded: Any, raw: Any) -> tuple[Pipeline | None, list[Mistake]]:
    try:
        return Pipeline.model_validate(expanded), []
    except ValidationError as error:
        found = [Mistake.from_pydantic(detail, raw) for detail in error.errors()]
        return None, drop_echoes(found)


def _load(file: Path, environment: Mapping[str, str] | None) -> LoadedSpec:
    text = ""
    try:
        text = file.read_text(encoding="utf-8")
        return LoadedSpec(file, text, parse_pipeline(text, str(file), environment))
    except SpecError as error:
        return LoadedSpec(file, text, error=error)
    except (OSError, UnicodeDecodeError) as error:
        return LoadedSpec(file, text, error=SpecError(str(file), (f"cannot be read: {error}",)))


def _check_together(specs: list[LoadedSpec]) -> list[LoadedSpec]:
    """Refuse what only shows between specs: a name or a folder twice, an `after` to nowhere."""
    counts = Counter(spec.name for spec in specs)
    after = {spec.pipeline.name: spec.pipeline.after for spec in specs if spec.pipeline}
    places = [place for spec in specs if spec.pipeline for place in list_places(spec.pipeline)]

    def check(spec: LoadedSpec) -> LoadedSpec:
        if spec.pipeline is None:
            return spec
        problems = [
            f"{spell_place(place, spec.text)}: {what}"
            for place, what in _find_conflicts(spec.pipeline, counts, after, places)
        ]
        if not problems:
            return spec
        return replace(spec, error=SpecError(str(spec.file), tuple(problems)))

    return [check(spec) for spec in specs]


def _find_conflicts(
    pipeline: Pipeline,
    counts: Counter[str],
    after: Mapping[str, tuple[str, ...]],
    places: list[Place],
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    name = pipeline.name
    if counts[name] > 1:
        yield ("name",), f"{name!r} is the name of {counts[name]} specs; give each its own"
    for number, upstream in enumerate(pipeline.after):
        if upstream not in counts:
            known = ", ".join(sorted(counts))
            yield ("after", number), f"there is no pipeline {upstream!r}; there are {known}"
    if _leads_to(name, after, start=name):
        yield ("after",), "leads back to this pipeline, so that none of them would ever start"
    for mine in list_places(pipeline):
        clashes = (mine.find_clash(other) for other in places if other.pipeline != name)
        yield from ((mine.field, clash) for clash in clashes if clash)


def _leads_to(target: str, after: Mapping[str, tuple[str, ...]], start: str) -> bool:
    reached: set[str] = set()
    pending = list(after.get(start, ()))
    while pending:
        name = pending.pop()
        if name == target:
            return True
        if name not in reached:
            reached.add(name)
            pending += after.get(name, ())
    return False


def _describe_yaml_error(error: YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{where}this is not YAML: {problem}"
