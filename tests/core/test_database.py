"""A database's connection: what libpq is told, and nothing secret told to anyone else."""

import pickle

import pytest

from tidegate.core.database import DatabaseConnection
from tidegate.core.errors import ConnectionSpecError

OPTIONS = {
    "host": "db",
    "port": "5433",
    "user": "etl",
    "password": "canary",
    "dbname": "sales",
    "sslmode": "verify-full",
}


def test_libpq_is_told_every_option_and_how_long_to_wait():
    told = DatabaseConnection.from_options("c", OPTIONS).to_libpq()
    assert told == OPTIONS | {"application_name": "tidegate", "connect_timeout": "10"}
    patient = DatabaseConnection.from_options("c", OPTIONS | {"connect_timeout": "60"})
    assert patient.to_libpq()["connect_timeout"] == "60"


def test_other_spellings_are_known_and_what_airflow_s_hooks_need_is_passed_over():
    spelled = {"host": "db", "login": "etl", "schema": "sales", "cursor": "dictcursor"}
    assert DatabaseConnection.from_options("c", spelled).options == {
        "host": "db",
        "user": "etl",
        "dbname": "sales",
    }


def test_several_hosts_have_several_ports():
    assert DatabaseConnection.from_options("c", OPTIONS | {"host": "a,b", "port": "1,2"})


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"host": ""}, "host is missing"),
        ({"host": "", "dbname": ""}, "host and dbname are missing"),
        ({"nonsense": "canary"}, "it has nonsense, and allowed are application_name"),
        ({"port": "canary"}, "port must be a number"),
        ({"connect_timeout": "canary"}, "connect_timeout must be a number"),
        ({"sslmode": "canary"}, "sslmode must be one of disable, allow"),
        ({"bootstrap.servers": "canary"}, "so its type is not postgres"),
    ],
)
def test_options_that_cannot_be_used_are_told_without_their_values(options, told):
    with pytest.raises(ConnectionSpecError, match="'c' cannot be used for a database") as error:
        DatabaseConnection.from_options("c", OPTIONS | options)
    assert told in str(error.value)
    assert "canary" not in str(error.value)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(ConnectionSpecError) as error:
        DatabaseConnection.from_options("c", {"port": "x", "sslmode": "x", "a": "x"})
    assert str(error.value).count(";") == 3


def test_a_connection_s_text_holds_no_secret_and_its_copy_has_it():
    connection = DatabaseConnection.from_options("c", OPTIONS)
    assert repr(connection) == "DatabaseConnection(name='c')"
    assert pickle.loads(pickle.dumps(connection)) == connection  # noqa: S301
