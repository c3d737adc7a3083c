"""Reading specs from YAML: one file, one pipeline, all mistakes at once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from tidegate.core.errors import SpecError
from tidegate.core.spec.environment import expand
from tidegate.core.spec.mistake import Mistake, drop_echoes, spell_place
from tidegate.core.spec.pipeline import Pipeline

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class LoadedSpec:
    """One spec file: its text, and the pipeline in it or what is wrong with it."""

    file: Path
    text: str
    pipeline: Pipeline | None = None
    error: SpecError | None = None

    def require(self) -> Pipeline:
        """Return the pipeline, or raise what is wrong with it."""
        if self.pipeline is None:
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
    specs = [_load(direct, environment)] if direct.is_file() else []
    if not specs or (specs[0].pipeline and specs[0].pipeline.name != name):
        specs = load_specs(folder, environment)
    for spec in specs:
        if spec.pipeline and spec.pipeline.name == name:
            return spec
        if spec.error and spec.file.stem == name:
            return spec
    known = sorted(spec.pipeline.name for spec in specs if spec.pipeline)
    raise SpecError(
        str(folder),
        (f"there is no pipeline {name!r} in it; there are {', '.join(known) or 'none'}",),
    )


def parse_pipeline(
    text: str, file: str = "<text>", environment: Mapping[str, str] | None = None
) -> Pipeline:
    """Parse one pipeline from YAML, raising all mistakes as one error."""
    try:
        raw = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise SpecError(file, (_describe_yaml_error(error),)) from None
    if not isinstance(raw, dict):
        found = "nothing" if raw is None else f"a {type(raw).__name__}"
        raise SpecError(file, (f"the file holds {found}; it must hold name:, source:, sinks: …",))
    expanded, problems = expand(raw, os.environ if environment is None else environment)
    told = [f"{spell_place(place, text)}: {what}" for place, what in problems]
    unset = {place for place, _ in problems}
    try:
        pipeline = Pipeline.model_validate(expanded)
    except ValidationError as error:
        mistakes = drop_echoes([Mistake.from_pydantic(detail) for detail in error.errors()])
        told += [mistake.describe(text) for mistake in mistakes if mistake.place not in unset]
        raise SpecError(file, tuple(told)) from None
    if told:
        raise SpecError(file, tuple(told))
    return pipeline


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
    """Refuse what only shows between specs: a name twice, an `after` that leads nowhere."""
    counts = Counter(spec.pipeline.name for spec in specs if spec.pipeline)
    # A broken spec is most likely the pipeline that its file is named after.
    broken = {spec.file.stem for spec in specs if spec.error}

    def check(spec: LoadedSpec) -> LoadedSpec:
        problems = list(_find_conflicts(spec.pipeline, counts, broken)) if spec.pipeline else []
        if not problems:
            return spec
        return replace(spec, pipeline=None, error=SpecError(str(spec.file), tuple(problems)))

    return [check(spec) for spec in specs]


def _find_conflicts(pipeline: Pipeline, counts: Counter[str], broken: set[str]) -> Iterator[str]:
    if counts[pipeline.name] > 1:
        yield f"name: {pipeline.name!r} is the name of {counts[pipeline.name]} specs; give each its own"
    for upstream in pipeline.after:
        if upstream not in counts and upstream not in broken:
            yield f"after: there is no pipeline {upstream!r}; there are {', '.join(sorted(counts))}"


def _describe_yaml_error(error: YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{where}this is not YAML: {problem}"
