"""What all parts of a spec share: strictness, and the field types used again and again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ModelWrapValidatorHandler,
    PlainSerializer,
    PositiveInt,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

NAME_PATTERN = r"[a-z][a-z0-9_]{0,99}"

_COLUMN_PATTERN = r"[A-Za-z_][A-Za-z0-9_]{0,127}"
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d{1,12})\s*([smhd])")
_FIRST_YEAR, _LAST_YEAR = 1970, 9000  # beyond, no zone can be reckoned with
_LONGEST_SECONDS = 100 * 365 * 86400
_UNSAFE = frozenset("\"'`$;|<>&\\")
_SECRET = re.compile(
    r"passw(or)?d|secret|sasl\.jaas|token$|credentials?$"
    r"|(api|access|account|private|session|sas)[._-]?(key|token)",
    re.IGNORECASE,
)


class SpecModel(BaseModel):
    """A part of a spec: frozen, strict about names, all its mistakes told at once."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:  # noqa: ARG003
        """Yield what is wrong between fields, looking at what was given."""
        yield from ()

    @model_validator(mode="wrap")
    @classmethod
    def _collect_mistakes(cls, given: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        # A validator that runs after the fields would stay silent while any field is wrong.
        conflicts = list(cls.find_conflicts(given)) if isinstance(given, Mapping) else []
        try:
            model, mistakes = validate(given), []
        except ValidationError as error:
            model, mistakes = None, [_restate(detail) for detail in error.errors()]
        mistakes += [
            InitErrorDetails(
                type=PydanticCustomError("conflict", "{what}", {"what": what}), input=given
            )
            for what in conflicts
        ]
        if model is None or mistakes:
            raise ValidationError.from_exception_data(cls.__name__, mistakes)
        return model


def _restate(detail: ErrorDetails) -> InitErrorDetails:
    # Pydantic cannot build its own errors anew from their details alone.
    context = {"what": detail["msg"].removeprefix("Value error, ")}
    return InitErrorDetails(
        type=PydanticCustomError(detail["type"], "{what}", context),
        loc=detail["loc"],
        input=detail["input"],
    )


def _parse_duration(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(str(value).strip())
    if not match:
        raise ValueError("must be a number and a unit, such as 30s, 5m, 12h or 7d")
    seconds = int(match[1]) * _UNIT_SECONDS[match[2]]
    if seconds > _LONGEST_SECONDS:
        raise ValueError("must be at most 100 years")
    return timedelta(seconds=seconds)


def format_duration(value: timedelta) -> str:
    """Spell a duration as a spec does."""
    seconds = int(value.total_seconds())
    unit = next(u for u in "dhms" if seconds % _UNIT_SECONDS[u] == 0)
    return f"{seconds // _UNIT_SECONDS[unit]}{unit}"


Duration = Annotated[
    timedelta,
    BeforeValidator(_parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^\d+\s*[smhd]$", "examples": ["5m", "7d"]}),
]
"""A length of time such as 30s, 5m, 12h or 7d."""


def _refuse_number(value: Any) -> Any:
    if isinstance(value, int | float) or re.fullmatch(r"\s*[+-]?\d+(\.\d*)?\s*", str(value)):
        raise ValueError("must be a date or a time, such as 2026-01-31 or 2026-01-31T08:00:00Z")
    return value


def _check_year(at: datetime) -> datetime:
    if not _FIRST_YEAR <= at.year <= _LAST_YEAR:
        raise ValueError(f"must be between the years {_FIRST_YEAR} and {_LAST_YEAR}")
    return at


Moment = Annotated[
    datetime,
    BeforeValidator(_refuse_number),
    AfterValidator(lambda at: _check_year(at if at.tzinfo else at.replace(tzinfo=UTC))),
]
"""A point in time; without a zone it is UTC."""


def refuse_truth(value: Any) -> Any:
    """Refuse true and false where a number is wanted; Python takes them for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("must be a whole number")  # noqa: TRY004
    return value


Count = Annotated[PositiveInt, BeforeValidator(refuse_truth)]
"""A whole number from 1 on."""


def check_pattern(pattern: str, rule: str) -> AfterValidator:
    """Check a text against a pattern, and tell the rule instead of the pattern."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if not compiled.fullmatch(value):
            raise ValueError(f"must be {rule}")
        return value

    return AfterValidator(check)


Name = Annotated[
    str,
    check_pattern(NAME_PATTERN, "lower-case letters, digits and _, a letter first, at most 100"),
    WithJsonSchema({"type": "string", "pattern": f"^{NAME_PATTERN}$"}),
]
"""A name that is safe as a folder, a DAG id and a SQL identifier."""

Column = Annotated[
    str,
    check_pattern(_COLUMN_PATTERN, "letters, digits and _, no digit first, at most 128"),
    WithJsonSchema({"type": "string", "pattern": f"^{_COLUMN_PATTERN}$"}),
]
"""A column's name."""

_FUNCTION = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*"

FunctionReference = Annotated[
    str,
    check_pattern(_FUNCTION, "module:function, such as transforms.orders:clean"),
    WithJsonSchema({"type": "string", "pattern": f"^{_FUNCTION}$"}),
]
"""A function in a module below the specs' folder."""


def _check_location(value: str) -> str:
    if ".." in value.split("/"):
        raise ValueError("must not contain '..'; name the folder itself")
    if any(character in value for character in "*?[]{}"):
        raise ValueError("must be a folder, not a pattern; use glob for file names")
    if not value.isprintable():
        raise ValueError("must not contain control characters")
    if _UNSAFE & set(value):
        raise ValueError("must not contain quotes or any of $ ; | < > & \\")
    return normalise_location(value)


def normalise_location(value: str) -> str:
    """Spell a location in one way, so that two spellings of one folder are equal."""
    scheme, separator, rest = value.strip().rpartition("://")
    parts = rest.split("/")
    kept = [part for part in parts[1:] if part not in {"", "."}]
    first = [] if parts[0] == "." and kept else [parts[0]]
    return f"{scheme}{separator}{'/'.join([*first, *kept]) or '/'}"


Location = Annotated[str, StringConstraints(min_length=1), AfterValidator(_check_location)]
"""A folder: relative to the data root, an absolute path, or a URL."""


def is_true(given: Any) -> bool:
    """Whether a value that is not validated yet stands for true."""
    return str(given).lower() in {"true", "yes", "on", "1", "t", "y"}


def _stringify(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _refuse_secret_names(options: dict[str, str]) -> dict[str, str]:
    named = sorted(key for key in options if _SECRET.search(key))
    if named:
        raise ValueError(
            f"{', '.join(named)} would hold a secret, and a spec is shown to everyone; "
            "put it in an Airflow connection or in Spark's own configuration"
        )
    return options


Options = Annotated[
    dict[
        str,
        Annotated[
            str, BeforeValidator(_stringify, json_schema_input_type=str | bool | int | float)
        ],
    ],
    AfterValidator(_refuse_secret_names),
]
"""Options passed on to Spark; never a secret."""


def tell_error(detail: Any) -> str:
    """Say a mistake as pydantic found it: the field, and what is wrong with it."""
    place = ".".join(map(str, detail["loc"]))
    message = detail["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message
