"""A schema written as Spark's DDL, checked without Spark."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, StringConstraints

_EXAMPLE = "write it as 'id long, at timestamp'"
_TYPES = (
    "array binary boolean byte char date decimal double float int interval long map short "
    "string struct timestamp timestamp_ntz variant"
).split()
# sqlglot's names of the types above.
_KNOWN = frozenset(
    "ARRAY BIGINT BINARY BOOLEAN CHAR DATE DECIMAL DOUBLE FLOAT INT INTERVAL MAP SMALLINT STRUCT "
    "TEXT TIMESTAMP TIMESTAMPLTZ TIMESTAMPNTZ TIMESTAMPTZ TINYINT VARCHAR VARIANT".split()
)


def parse_columns(ddl: str) -> tuple[str, ...]:
    """Parse a schema such as `id long, at timestamp` and return its column names."""
    # Imported here: only reading specs needs a SQL parser, and it takes long to load.
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        definition = parse_one(f"CREATE TABLE t ({ddl}\n)", dialect="spark").find(exp.Schema)
    except SqlglotError as error:
        details = getattr(error, "errors", None) or [{}]
        near = f" near {details[0]['highlight']!r}" if details[0].get("highlight") else ""
        raise ValueError(
            f"does not parse{near}; {_EXAMPLE}, with types out of {', '.join(_TYPES)}"
        ) from None
    columns = definition.expressions if definition else []
    if not columns:
        raise ValueError(f"names no columns; {_EXAMPLE}")
    for column in columns:
        if not isinstance(column, exp.ColumnDef) or column.args.get("kind") is None:
            raise ValueError(f"{column.sql(dialect='spark')!r} has no type; {_EXAMPLE}")
        for data_type in column.find_all(exp.DataType):
            base = getattr(data_type.this, "name", None) or type(data_type.this).__name__
            if base.upper() not in _KNOWN:
                raise ValueError(
                    f"column {column.name!r} has type {data_type.sql(dialect='spark').lower()!r}; "
                    f"the types are {', '.join(_TYPES)}"
                )
    return _refuse_duplicates(tuple(column.name for column in columns))


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
