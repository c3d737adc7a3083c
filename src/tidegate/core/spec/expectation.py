"""What rows must be like, and what becomes of those that are not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
)

from tidegate.core.spec.base import Column, Name, SpecModel

_SHARE = re.compile(r"(\d{1,3}(?:\.\d+)?)\s*%")
_WHOLE = 100

Condition = Annotated[str, StringConstraints(min_length=1)]
"""A condition in Spark's SQL; a row meets it where it is true, not where it is false or null."""


MALFORMED_RULE = "malformed"
"""The rule by which values that did not parse are put aside."""


class OnFail(StrEnum):
    """What becomes of a row that does not meet an expectation."""

    WARN = "warn"
    DROP = "drop"
    QUARANTINE = "quarantine"
    FAIL = "fail"


def _parse_share(value: Any) -> Any:
    # Of numbers from 1 on, nobody could say whether a share or percent is meant.
    if isinstance(value, float) and 0 < value < 1:
        return value
    match = _SHARE.fullmatch(str(value).strip())
    if not match or float(match[1]) > _WHOLE:
        raise ValueError("must be a share of the rows: percent as 1% or 0.5%, or between 0 and 1")
    return float(match[1]) / _WHOLE


def _format_share(value: float) -> str:
    return f"{value * _WHOLE:.10g}%"


Share = Annotated[
    float,
    BeforeValidator(_parse_share),
    PlainSerializer(_format_share, return_type=str),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^\d{1,3}(\.\d+)?\s*%$", "examples": ["1%"]},
                {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            ]
        }
    ),
]
"""A part of the whole, written as 1% or 0.01."""


class Expectation(SpecModel):
    """A rule that each row of a batch is held against."""

    name: Name | None = Field(
        default=None, description="What it is called in counts and quarantine; needed for check."
    )
    check: Condition | None = Field(
        default=None, description="A SQL condition that must be true; null is not."
    )
    not_null: Annotated[tuple[Column, ...], Field(min_length=1)] | None = Field(
        default=None, description="Columns that must have a value."
    )
    unique: Annotated[tuple[Column, ...], Field(min_length=1)] | None = Field(
        default=None, description="Columns by which no two rows of a batch may be the same."
    )
    on_fail: OnFail = Field(
        default=OnFail.QUARANTINE,
        description="warn counts, drop leaves the row out, quarantine puts it aside, fail stops.",
    )
    fail_above: Share | None = Field(
        default=None, description="Stop the run where more of a batch's rows fail, such as 1%."
    )

    @property
    def label(self) -> str:
        """What the rule is called."""
        if self.name:
            return self.name
        kind, columns = ("not_null", self.not_null) if self.not_null else ("unique", self.unique)
        return "_".join([kind, *(column.lower() for column in columns or ())])

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        said = {key for key, value in given.items() if value is not None}
        if len({"check", "not_null", "unique"} & said) != 1:
            yield "needs exactly one of check, not_null and unique"
        if given.get("name") == MALFORMED_RULE:
            yield f"name must not be {MALFORMED_RULE}: values that do not parse are put aside by it"
        if "check" in said and "name" not in said:
            yield "check needs a name to be counted by"
        if "fail_above" in said and given.get("on_fail") == OnFail.FAIL:
            yield "on_fail fail stops at the first row, so fail_above must go"


def find_rule_twins(given: Any) -> Iterator[str]:
    """Yield the names that more than one rule of a list has."""
    labels = Counter(_label(rule) for rule in given) if isinstance(given, list | tuple) else {}
    twins = sorted(label for label, count in labels.items() if label and count > 1)
    if twins:
        yield f"expect has more than one rule named {', '.join(twins)}"


def _label(rule: Any) -> str | None:
    try:
        return Expectation.model_validate(rule).label
    except ValidationError:
        return None  # told by itself
