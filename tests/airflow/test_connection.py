"""Connections as Airflow keeps them."""

import json

import pytest

from tidegate.airflow.connection import read_airflow_connection
from tidegate.core.errors import ConnectionSpecError

DATABASE = {
    "host": "db",
    "port": "5433",
    "user": "etl",
    "password": "p/w",
    "dbname": "sales",
    "sslmode": "require",
}


@pytest.mark.parametrize(
    ("stored", "options"),
    [
        ({"conn_type": "kafka", "host": "b", "port": 9092}, {"bootstrap.servers": "b:9092"}),
        (
            {"conn_type": "kafka", "extra": {"bootstrap.servers": "b:9092", "client.id": "c"}},
            {"bootstrap.servers": "b:9092", "client.id": "c"},
        ),
        (
            {
                "conn_type": "postgres",
                "host": "db",
                "port": 5433,
                "login": "etl",
                "password": "p/w",
                "schema": "sales",
                "extra": {"sslmode": "require"},
            },
            DATABASE,
        ),
    ],
)
def test_a_connection_is_told_by_its_options(monkeypatch, stored, options):
    monkeypatch.setenv("AIRFLOW_CONN_SOME", json.dumps(stored))
    assert read_airflow_connection("some") == options


def test_a_database_s_address_says_the_same(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_SOME", "postgres://etl:p%2Fw@db:5433/sales?sslmode=require")
    assert read_airflow_connection("some") == DATABASE


def test_a_connection_that_is_not_there_is_told_with_examples():
    with pytest.raises(ConnectionSpecError, match=r"'nowhere' in Airflow.*kafka.*postgres"):
        read_airflow_connection("nowhere")
