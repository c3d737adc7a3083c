"""Connections to PostgreSQL, opened with some patience."""

from __future__ import annotations

import time
from typing import Any

import psycopg

from tidegate.core.database import DatabaseConnection
from tidegate.spark.sinks.jdbc.complaint import describe_unopened, is_refusal

_PATIENCE_SECONDS = 15.0
_PAUSE_SECONDS = 0.25


def open_session(connection: DatabaseConnection) -> psycopg.Connection[Any]:
    """Open a connection that commits each statement; wait a while for a server that restarts."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return psycopg.connect(
                **connection.to_libpq(),  # type: ignore[arg-type]  # libpq takes texts for numbers
                autocommit=True,
                client_encoding="utf8",
                prepare_threshold=None,  # poolers in between may not know a prepared statement
            )
        except psycopg.OperationalError as error:
            if is_refusal(error) or time.monotonic() > deadline:
                raise describe_unopened(error, connection.name) from None
        time.sleep(_PAUSE_SECONDS)
