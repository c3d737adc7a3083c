"""Connections as Airflow keeps them."""

from __future__ import annotations

from collections.abc import Mapping

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException

from tidegate.core.connection import parse_connection
from tidegate.core.errors import ConnectionSpecError


def read_airflow_connection(name: str) -> Mapping[str, str]:
    """Find a connection's options in Airflow, be it in its database, a vault or the environment."""
    try:
        connection = BaseHook.get_connection(name)
    except AirflowException as error:
        raise ConnectionSpecError(
            f"There is no connection {name!r} in Airflow.",
            remedy=f"Create it, for example by AIRFLOW_CONN_{name.upper()}="
            """'{"conn_type": "kafka", "extra": {"bootstrap.servers": "localhost:9092"}}'.""",
        ) from error
    host = connection.host
    if host and connection.port:
        host = f"{host}:{connection.port}"
    return parse_connection(connection.extra_dejson, host)
