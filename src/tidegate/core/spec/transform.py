"""What a pipeline does to its rows: steps in a row, and the static tables they join."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    WithJsonSchema,
)

from tidegate.core.spec.base import Location, Options, SpecModel, check_pattern
from tidegate.core.spec.files import FileFormat
from tidegate.core.spec.schema import Schema

_REFERENCE = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*"


class SqlStep(SpecModel):
    """A SELECT over `input`, the rows so far, and the static tables."""

    sql: Annotated[str, StringConstraints(min_length=1)]


class PythonStep(SpecModel):
    """A function `(df, context) -> df`, named as module:function."""

    python: Annotated[
        str,
        check_pattern(_REFERENCE, "module:function, such as transforms.orders:clean"),
        WithJsonSchema({"type": "string", "pattern": f"^{_REFERENCE}$"}),
    ]


class ChangeFormat(StrEnum):
    """Who wrote change records, and so what they look like."""

    DEBEZIUM = "debezium"
    DELTA = "delta"


class ChangesStep(SpecModel):
    """Change records into the rows that they tell of, with `_deleted` and `_sequence`."""

    changes: ChangeFormat = Field(
        description="debezium: before, after and op; delta: a table's change data feed."
    )
    sequence: Annotated[str, StringConstraints(min_length=1)] | None = Field(
        default=None,
        description="For debezium: what orders changes, in SQL, such as source.lsn; ts_ms.",
    )

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        if given.get("changes") == ChangeFormat.DELTA and given.get("sequence"):
            yield "sequence is only for changes debezium: those of a Delta table have versions"


def _tell_step(value: Any) -> str | None:
    keys = value.keys() if isinstance(value, dict) else getattr(type(value), "model_fields", ())
    return next((kind for kind in ("sql", "python", "changes") if kind in keys), None)


Step = Annotated[
    Annotated[SqlStep, Tag("sql")]
    | Annotated[PythonStep, Tag("python")]
    | Annotated[ChangesStep, Tag("changes")],
    Discriminator(
        _tell_step,
        custom_error_type="step",
        custom_error_message="a step is {sql: SELECT …}, {python: module:function} or "
        "{changes: debezium}",
    ),
]

Steps = Annotated[
    tuple[Step, ...],
    BeforeValidator(
        lambda value: value if isinstance(value, list | tuple) else [value],
        json_schema_input_type=Step | list[Step],
    ),
]
"""One step, or several in a row."""


class StaticDelta(SpecModel):
    """A Delta table to join with, read anew each run."""

    type: Literal["delta"]
    table: Location


class StaticFiles(SpecModel):
    """Files to join with, read anew each run."""

    type: Literal["files"]
    path: Location
    format: FileFormat
    file_schema: Schema = Field(alias="schema")
    options: Options = Field(default_factory=dict)


StaticTable = Annotated[StaticDelta | StaticFiles, Field(discriminator="type")]
