"""What PostgreSQL complains of, in words, and without the values that it quotes."""

from __future__ import annotations

import re

import psycopg

from tidegate.core.errors import SinkAwayError, SinkError

_AWAY = frozenset(
    {
        "25P03",  # idle in a transaction for too long
        "40001",  # serialization failure
        "40P01",  # deadlock
        "53300",  # too many connections
        "55P03",  # a lock was not to be had in time
        "57P01",  # shut down by the administrator
        "57P02",  # crashed
        "57P03",  # starting up
        "57P05",  # idle for too long
    }
)
_UNDEFINED_TABLE = "42P01"
_REFUSED = re.compile(
    r"authentication failed|no password supplied|does not exist|pg_hba\.conf|certificate|"
    r"not permitted to log in|permission denied"
)
_CONSTRAINTS = {
    "23502": "must not be null",
    "23503": "refers to another table",
    "23505": "is unique",
    "23514": "is a check",
    "23P01": "excludes others",
}
_COPIED_COLUMN = re.compile(r"^COPY [^\n]*, column (?P<column>[^\n]+?)(: |$)", re.MULTILINE)
_RETRY = "The next attempt takes the batch again."


def is_refusal(error: psycopg.Error) -> bool:
    """Whether waiting would not open the connection either."""
    # libpq tells no code of a connection that could not be opened.
    return bool(_REFUSED.search(str(error)))


def describe_unopened(error: psycopg.Error, connection: str) -> SinkError:
    """Say why no connection could be opened."""
    lines = str(error).splitlines()
    told = lines[0].rpartition("failed: ")[2].replace("FATAL:  ", "") if lines else "no reason told"
    if is_refusal(error):
        return SinkError(
            f"The database of the connection {connection!r} refuses it: {told}.",
            remedy="Correct user, password, database or certificates of the connection.",
        )
    return SinkAwayError(
        f"The database of the connection {connection!r} cannot be reached: {told}.",
        remedy=f"Start the database, or correct host and port of the connection. {_RETRY}",
    )


def describe(error: psycopg.Error, connection: str, table: str) -> SinkError:
    """Say what went wrong with an open connection."""
    code = error.sqlstate
    if is_passing(error):
        return SinkAwayError(
            f"The database of the connection {connection!r} went away while {table} was written.",
            cause=f"{type(error).__name__}.",
            remedy=f"Nothing of the batch is in the table. {_RETRY}",
        )
    if code and code.startswith("23"):
        return _describe_constraint(error, table)
    if code == "22P05":
        return describe_nul(table, _find_column(error) or "of JSON")
    if code and code.startswith("22"):
        column = _find_column(error)
        place = f" for its column {column}" if column else ""
        return SinkError(
            f"The table {table} does not take a value{place}: {_tell_kind(error)}.",
            remedy="Correct or filter such values in a step, or change the column's type.",
        )
    if code == "42501":
        return SinkError(
            f"The user of the connection {connection!r} may not write {table}: {_tell(error)}.",
            remedy="Grant INSERT, SELECT and UPDATE on the table and CREATE on its schema.",
        )
    if code == "21000":
        return SinkError(
            f"Two rows of the batch are the same to the unique index of {table}, by its keys.",
            cause="The index compares otherwise than the columns' types do.",
            remedy="Make the keys the same in a step, such as by lower().",
        )
    return SinkError(
        f"The database refuses to write {table}: {_tell(error)}.",
        cause=f"PostgreSQL's code is {code}.",
        remedy="Correct the table or the pipeline.",
    )


def is_passing(error: psycopg.Error) -> bool:
    """Whether the same may succeed when it is tried again."""
    code = error.sqlstate
    if code is None:
        return isinstance(error, psycopg.OperationalError)
    if code == _UNDEFINED_TABLE:  # another driver has dropped the staging table
        return "tidegate_staging" in (error.diag.message_primary or "")
    return code in _AWAY or code.startswith("08")


def _describe_constraint(error: psycopg.Error, table: str) -> SinkError:
    found = error.diag
    what = f"column {found.column_name}" if found.column_name else f"{found.constraint_name}"
    return SinkError(
        f"A row of the batch breaks a constraint of {table}: {what} "
        f"{_CONSTRAINTS.get(error.sqlstate or '', 'is violated')}.",
        cause="Nothing of the batch was written.",
        remedy="Filter such rows by the sink's where or expect, or write by mode upsert.",
    )


def describe_nul(table: str, column: str) -> SinkError:
    """Say that a text holds the one character that PostgreSQL has no place for."""
    return SinkError(
        f"A text for {table}, in the column {column}, holds the character NUL.",
        cause="PostgreSQL cannot keep it.",
        remedy=f"Take it out in a step, such as by replace({column}, char(0), '').",
    )


def _find_column(error: psycopg.Error) -> str | None:
    found = _COPIED_COLUMN.search(error.diag.context or "")
    return found["column"].strip('"') if found else error.diag.column_name


def _tell(error: psycopg.Error) -> str:
    return error.diag.message_primary or type(error).__name__


def _tell_kind(error: psycopg.Error) -> str:
    # What stands in quotes is a value, which may be nobody's business.
    return re.sub(r':? ".*"', "", _tell(error), flags=re.DOTALL)
