"""Connections as Airflow keeps them."""

from __future__ import annotations

from collections.abc import Mapping

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException

from tidegate.core.connection import parse_fields
from tidegate.core.errors import ConnectionSpecError

_FIELDS = ("conn_type", "host", "port", "login", "password", "schema")


def read_airflow_connection(name: str) -> Mapping[str, str]:
    """Find a connection's options in Airflow, be it in its database, a vault or the environment."""
    try:
        connection = BaseHook.get_connection(name)
    except AirflowException as error:
        raise ConnectionSpecError(
            f"There is no connection {name!r} in Airflow.",
            remedy=f"Create it, for example by AIRFLOW_CONN_{name.upper()}="
            """'{"conn_type": "kafka", "extra": {"bootstrap.servers": "localhost:9092"}}', or for a """
            """database '{"conn_type": "postgres", "host": "localhost", "schema": "sales"}'.""",
        ) from error
    fields = {field: getattr(connection, field) for field in _FIELDS}
    return parse_fields(fields | {"extra": connection.extra_dejson})
