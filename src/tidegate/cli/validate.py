"""`tidegate validate` and `tidegate schema`: whether the specs are right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from tidegate.core.errors import SourceError, SpecError, TransformError
from tidegate.core.function import load_function
from tidegate.core.settings import Settings
from tidegate.core.spec.export import export_schema
from tidegate.core.spec.loader import LoadedSpec, load_specs
from tidegate.core.spec.mistake import spell_place
from tidegate.core.spec.pipeline import ONLY_SOURCE
from tidegate.core.spec.transform import PythonStep
from tidegate.core.spec.yaml import load_yaml
from tidegate.core.storage import open_path, write_text
from tidegate.core.values.schemas import read_schema_file


def validate(
    folder: Annotated[
        Path | None, typer.Argument(help="The specs' folder; TIDEGATE_PIPELINES by default.")
    ] = None,
) -> None:
    """Check every spec and import its transforms; exit 1 if anything is wrong."""
    specs = load_specs(folder or Settings.from_environment().pipelines)
    mistaken = 0
    for spec in specs:
        problems = (
            *(spec.error.problems if spec.error else ()),
            *_check_transforms(spec),
            *_check_schema_file(spec),
        )
        mistaken += bool(problems)
        print(SpecError(str(spec.file), problems) if problems else f"{spec.file}: ok")
    print(f"{len(specs)} spec{'s' * (len(specs) != 1)}, {mistaken} with mistakes")
    if not specs:
        print("There is nothing to validate: put specs named *.yaml into the folder.")
    raise typer.Exit(1 if mistaken or not specs else 0)


def schema(
    output: Annotated[Path | None, typer.Option(help="Write it to this file.")] = None,
) -> None:
    """Print the JSON Schema of a spec, for editors."""
    if output is None:
        print(export_schema(), end="")
    else:
        write_text(open_path(output), export_schema())


def _check_schema_file(spec: LoadedSpec) -> Iterator[str]:
    for name, source in spec.pipeline.kafka_inputs.items() if spec.pipeline else ():
        if source.value.schema_file:
            try:
                read_schema_file(source.value, spec.file.parent)
            except SourceError as error:
                source_at = ("source",) if name == ONLY_SOURCE else ("sources", name)
                place = (*source_at, "value", "schema_file")
                yield f"{spell_place(place, spec.text)}: {error}"


def _check_transforms(spec: LoadedSpec) -> Iterator[str]:
    for number, step in enumerate(_list_steps(spec)):
        try:
            load_function(PythonStep.model_validate(step).python, spec.file.parent)
        except ValidationError:
            continue  # a step in SQL, or one that was told already
        except TransformError as error:
            yield f"{spell_place(('transform', number, 'python'), spec.text)}: {error}"


def _list_steps(spec: LoadedSpec) -> Sequence[Any]:
    """List a spec's steps, also where something else in it is wrong."""
    if spec.pipeline:
        return spec.pipeline.transform
    try:
        raw = load_yaml(spec.text)
    except Exception:
        return ()  # told already: whatever a parser stumbles over
    given = raw.get("transform") if isinstance(raw, dict) else None
    return given if isinstance(given, list) else [given]
