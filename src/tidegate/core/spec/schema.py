"""A schema written as Spark's DDL, checked without Spark.

A SQL parser of some library would take far more than Spark does here (`id text`, or a whole statement
behind a bracket), so the few rules of a schema are written down instead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

_END = "the end"
_EXAMPLE = "write it as 'id long, at timestamp'"
_SIMPLE = frozenset(
    "bigint binary boolean byte date double float int integer long real short smallint string "
    "timestamp timestamp_ltz timestamp_ntz tinyint variant".split()
)
_DECIMAL = frozenset({"dec", "decimal", "numeric"})
_SIZED = frozenset({"char", "character", "varchar"})
_NESTED = frozenset({"array", "map", "struct"})
_INTERVALS = (("year", "month"), ("day", "hour", "minute", "second"))
_DEEPEST = 100
_TYPES = ", ".join(sorted(_SIMPLE | _DECIMAL | _SIZED | _NESTED | {"interval"}))
_MOST_DIGITS = 38
_MOST_NUMBER_DIGITS = 9
# Spark takes a word that begins with a digit, unless it reads as a number: 1a is a name, 10l is not.
_NAME = re.compile(r"`.+`|(?!\d+(e\d+)?(bd|[bdflsy])?$)[a-z0-9_]+", re.IGNORECASE | re.ASCII)
_TOKEN = re.compile(
    r"\s*(?:(`(?:[^`]|``)+`)|('(?:[^'\\]|\\.|\'\')*'|\"(?:[^\"\\]|\\.)*\")|(\w+)|([<>(),:]))"
)


def parse_columns(ddl: str) -> tuple[str, ...]:
    """Parse a schema such as `id long, at timestamp` and return its column names."""
    reader = _Reader(_split(ddl))
    if reader.is_done:
        raise ValueError(f"names no columns; {_EXAMPLE}")
    columns = [reader.read_field(separator=None)]
    while reader.accept(","):
        columns.append(reader.read_field(separator=None))
    if not reader.is_done:
        raise ValueError(f"does not parse near {reader.peek()!r}; {_EXAMPLE}")
    return _refuse_duplicates(tuple(columns))


def _split(ddl: str) -> list[str]:
    tokens, at = [], 0
    text = ddl.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match:
            raise ValueError(f"does not parse near {text[at : at + 20].strip()!r}; {_EXAMPLE}")
        tokens.append(match[0].strip())
        at = match.end()
    return tokens


@dataclass
class _Reader:
    """Reads a schema's words one after the other."""

    tokens: list[str]
    at: int = 0
    depth: int = 0

    @property
    def is_done(self) -> bool:
        return self.at == len(self.tokens)

    def peek(self) -> str:
        return _END if self.is_done else self.tokens[self.at]

    def accept(self, *words: str) -> bool:
        """Step over these words if they come next."""
        ahead = [token.lower() for token in self.tokens[self.at : self.at + len(words)]]
        is_next = ahead == list(words)
        self.at += len(words) if is_next else 0
        return is_next

    def expect(self, word: str, *, after: str) -> None:
        if not self.accept(word):
            raise ValueError(f"needs {word!r} after {after}, found {self.peek()!r}; {_EXAMPLE}")

    def take(self) -> str:
        token = self.peek()
        self.at += not self.is_done
        return token

    def read_field(self, separator: str | None) -> str:
        """Read a column or a struct's field: name, type, and what may follow."""
        name = self.take()
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"needs a column's name, found {name!r}; {_EXAMPLE}, an odd name in `backquotes`"
            )
        if separator:
            self.accept(separator)
        if self.is_done or self.peek() in ",>":
            raise ValueError(f"column {name!r} has no type; {_EXAMPLE}")
        self.read_type(name)
        self.accept("not", "null")
        if self.accept("comment") and self.take()[0] not in "'\"":
            raise ValueError(f"column {name!r}: COMMENT needs a text in single quotes")
        return name[1:-1].replace("``", "`") if name.startswith("`") else name

    def read_type(self, column: str) -> None:
        written = self.take()
        kind = written.lower()
        if kind in _DECIMAL:
            self._read_decimal(column)
        elif kind in _SIZED:
            self.expect("(", after=f"{kind} of column {column!r}")
            self._read_number(column)
            self.expect(")", after="the length")
        elif kind in _NESTED:
            self._read_nested(kind, column)
        elif kind == "interval":
            self._read_interval(column)
        elif kind not in _SIMPLE:
            raise ValueError(f"column {column!r} has type {written!r}; the types are {_TYPES}")

    def _read_decimal(self, column: str) -> None:
        if not self.accept("("):
            return
        precision = self._read_number(column)
        scale = self._read_number(column) if self.accept(",") else 0
        self.expect(")", after="the scale")
        if not scale <= precision <= _MOST_DIGITS:
            raise ValueError(
                f"column {column!r} is decimal({precision},{scale}); it may have up to "
                f"{_MOST_DIGITS} digits, and no more behind the point than in all"
            )

    def _read_number(self, column: str) -> int:
        token = self.take()
        if not token.isdecimal() or len(token) > _MOST_NUMBER_DIGITS:
            raise ValueError(f"column {column!r} needs a number, found {token!r}; {_EXAMPLE}")
        return int(token)

    def _read_nested(self, kind: str, column: str) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ValueError(f"column {column!r} is nested more than {_DEEPEST} deep")
        self.expect("<", after=f"{kind} of column {column!r}")
        self._read_inside(kind, column)
        self.depth -= 1

    def _read_inside(self, kind: str, column: str) -> None:
        if kind == "struct":
            if not self.accept(">"):
                self.read_field(separator=":")
                while self.accept(","):
                    self.read_field(separator=":")
                self.expect(">", after=f"the fields of column {column!r}")
            return
        self.read_type(column)
        if kind == "map":
            self.expect(",", after=f"the key of column {column!r}")
            self.read_type(column)
        self.expect(">", after=f"{kind} of column {column!r}")

    def _read_interval(self, column: str) -> None:
        units = next((group for group in _INTERVALS if self.peek().lower() in group), None)
        if units is None:
            if self.peek().lower() in {",", ">", "not", "comment", _END}:
                return  # an interval of any unit
            raise ValueError(f"column {column!r}: write 'interval day to second' or the like")
        start = units.index(self.take().lower())
        if self.accept("to") and self.take().lower() not in units[start + 1 :]:
            raise ValueError(f"column {column!r}: write 'interval day to second' or the like")


def _refuse_duplicates(names: tuple[str, ...]) -> tuple[str, ...]:
    lowered = [name.lower() for name in names]
    twice = sorted({name for name in lowered if lowered.count(name) > 1})
    if twice:
        raise ValueError(f"names {', '.join(twice)} more than once; Spark ignores case")
    return names


def _check(ddl: str) -> str:
    parse_columns(ddl)
    return ddl


Schema = Annotated[str, StringConstraints(min_length=1), AfterValidator(_check)]
"""A schema as Spark's DDL, such as `id long, at timestamp`."""
