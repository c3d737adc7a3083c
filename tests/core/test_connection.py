"""Connections: one definition for both clients, and nothing secret told."""

import json
import stat
from pathlib import Path

import pytest

from tidegate.core.connection import (
    HANDED_OVER,
    KafkaConnection,
    hand_over,
    parse_connection,
    parse_fields,
    read_connection,
)
from tidegate.core.errors import ConnectionSpecError

PLAIN = {"bootstrap.servers": "broker:9092"}
SASL = PLAIN | {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": 'the "etl" user',
    "sasl.password": "canary\\7f3a",
}

DATABASE = {
    "host": "db",
    "port": "5433",
    "user": "etl",
    "password": "canary/7f3a",
    "dbname": "sales",
    "sslmode": "require",
}
DATABASE_FIELDS = {
    "conn_type": "postgres",
    "host": "db",
    "port": 5433,
    "login": "etl",
    "password": "canary/7f3a",
    "schema": "sales",
    "extra": {"sslmode": "require"},
}


def connection(**options):
    return KafkaConnection.from_options("c", PLAIN | options)


@pytest.mark.parametrize(
    "variables",
    [
        {"TIDEGATE_CONN_C": json.dumps(PLAIN)},
        {"AIRFLOW_CONN_C": json.dumps({"conn_type": "kafka", "extra": PLAIN})},
        {"AIRFLOW_CONN_C": json.dumps({"conn_type": "kafka", "extra": json.dumps(PLAIN)})},
        {"AIRFLOW_CONN_C": '{"conn_type": "kafka", "host": "broker", "port": 9092}'},
        {"AIRFLOW_CONN_C": '{"conn_type": "kafka", "host": "broker:9092"}'},
        {"TIDEGATE_CONN_C": json.dumps(PLAIN), "AIRFLOW_CONN_C": "not looked at"},
    ],
)
def test_a_connection_is_found_in_the_environment(variables):
    assert read_connection("c", variables) == PLAIN


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(DATABASE),
        json.dumps(DATABASE | {"port": 5433}),
        json.dumps(DATABASE_FIELDS),
        json.dumps(DATABASE_FIELDS | {"extra": '{"sslmode": "require"}'}),
        "postgres://etl:canary%2F7f3a@db:5433/sales?sslmode=require",
        "postgresql://etl:canary%2F7f3a@db:5433/sales?__extra__=%7B%22sslmode%22%3A+%22require%22%7D",
    ],
)
@pytest.mark.parametrize("prefix", ["TIDEGATE_CONN_", "AIRFLOW_CONN_"])
def test_a_database_is_found_in_the_environment(prefix, text):
    assert read_connection("c", {f"{prefix}C": text}) == DATABASE


def test_of_a_database_only_what_was_given_is_told():
    assert read_connection("c", {"AIRFLOW_CONN_C": "postgres://db/sales"}) == {
        "host": "db",
        "dbname": "sales",
    }
    assert parse_fields({"conn_type": "postgres", "host": "db", "port": None}) == {"host": "db"}


@pytest.mark.parametrize(
    "text",
    [
        "postgres://etl:canary@db:port/sales",
        "postgres://etl:canary@db/sales?__extra__=canary",
        "postgres://etl:canary@db/sales?__extra__=7",
        "mysql://etl:canary@db/sales",
        '{"conn_type": "postgres", "password": "canary", "extra": "canary"}',
        '{"conn_type": "postgres", "password": "canary", "extra": "[5]"}',
    ],
)
def test_a_database_s_variable_that_cannot_be_read_is_told_without_its_text(text):
    with pytest.raises(ConnectionSpecError, match=r"AIRFLOW_CONN_C does not hold") as told:
        read_connection("c", {"AIRFLOW_CONN_C": text})
    assert "canary" not in str(told.value)


def test_a_database_is_handed_over_like_any_other():
    with hand_over(["c"], lambda _: parse_fields(DATABASE_FIELDS)) as left:
        assert read_connection("c", left) == DATABASE
        assert "canary" not in json.dumps(left)


def test_a_missing_connection_is_told_with_an_example():
    with pytest.raises(ConnectionSpecError, match=r"no connection 'c'.*set TIDEGATE_CONN_C="):
        read_connection("c", {})


@pytest.mark.parametrize("text", ["", "kafka://user:canary@broker", "[]", '"canary"', "{"])
def test_a_variable_that_is_no_json_object_is_told_without_its_text(text):
    with pytest.raises(ConnectionSpecError, match=r"TIDEGATE_CONN_C does not hold") as told:
        read_connection("c", {"TIDEGATE_CONN_C": text})
    assert "canary" not in str(told.value)


def test_values_are_texts_and_a_host_is_the_bootstrap_server():
    found = parse_connection({"enable.auto.commit": False, "x": None, "n": 5}, "broker:9092")
    assert found == {
        "enable.auto.commit": "false",
        "n": "5",
        "bootstrap.servers": "broker:9092",
    }
    assert parse_connection(PLAIN, "another") == PLAIN


def test_a_connection_is_handed_over_in_a_file_of_its_owner_s_alone():
    with hand_over(["c"], lambda _: SASL) as left:
        file = Path(left[HANDED_OVER])
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert read_connection("c", left) == SASL
        assert "canary" not in json.dumps(left)
    assert not file.exists()


def test_where_no_connection_is_needed_nothing_is_left():
    with hand_over([], lambda _: SASL) as left:
        assert left == {}


def test_what_was_handed_over_comes_first_and_others_are_still_found():
    with hand_over(["c"], lambda _: SASL) as left:
        variables = left | {"TIDEGATE_CONN_D": json.dumps(PLAIN)}
        assert read_connection("d", variables) == PLAIN
    assert read_connection("d", variables) == PLAIN  # its file is gone


def test_both_clients_are_told_the_same():
    made = KafkaConnection.from_options("c", SASL)
    assert made.to_librdkafka() == SASL
    java = made.to_java()
    assert java["bootstrap.servers"] == "broker:9092"
    assert java["security.protocol"] == "SASL_SSL"
    assert java["sasl.mechanism"] == "SCRAM-SHA-512"
    assert java["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="the \\"etl\\" user" password="canary\\\\7f3a";'
    )
    assert "sasl.password" not in java


def test_certificates_go_along_as_text(tmp_path):
    files = {name: tmp_path / name for name in ("ca", "certificate", "key")}
    for name, file in files.items():
        file.write_text(f"the {name}")
    java = connection(
        **{
            "security.protocol": "SSL",
            "ssl.ca.location": str(files["ca"]),
            "ssl.certificate.location": str(files["certificate"]),
            "ssl.key.location": str(files["key"]),
            "ssl.key.password": "secret",
            "ssl.endpoint.identification.algorithm": "none",
        }
    ).to_java()
    assert java["ssl.truststore.type"] == java["ssl.keystore.type"] == "PEM"
    assert java["ssl.truststore.certificates"] == "the ca"
    assert java["ssl.keystore.certificate.chain"] == "the certificate"
    assert java["ssl.keystore.key"] == "the key"
    assert java["ssl.key.password"] == "secret"
    assert java["ssl.endpoint.identification.algorithm"] == ""


@pytest.mark.parametrize("ask", [KafkaConnection.to_java, KafkaConnection.check_files])
def test_a_certificate_that_is_not_there_or_no_text_is_told(ask, tmp_path):
    with pytest.raises(ConnectionSpecError, match=r"as ssl\.ca\.location that .*No such file"):
        ask(connection(**{"ssl.ca.location": "/no/such/file"}))
    (tmp_path / "der").write_bytes(b"\x30\x82\xff")
    with pytest.raises(ConnectionSpecError, match="it is no text, and so not PEM"):
        ask(connection(**{"ssl.ca.location": str(tmp_path / "der")}))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"bootstrap.servers": ""}, "bootstrap.servers is missing"),
        ({"nonsense": "canary"}, "it has nonsense, and allowed are bootstrap.servers"),
        ({"enable.auto.commit": "True"}, "enable.auto.commit is true"),
        ({"security.protocol": "canary"}, "security.protocol must be one of PLAINTEXT"),
        ({"security.protocol": "SASL_SSL"}, "needs sasl.mechanism, sasl.username, sasl.password"),
        (SASL | {"sasl.mechanism": "canary"}, "sasl.mechanism must be one of PLAIN, SCRAM"),
        ({"ssl.certificate.location": "canary"}, "it also needs ssl.key.location"),
        (
            {"sasl.username": "canary", "sasl.password": "canary"},
            "it has sasl.password, sasl.username, which security.protocol PLAINTEXT and SSL do not",
        ),
        (SASL | {"security.protocol": "ssl"}, "set it to SASL_SSL or SASL_PLAINTEXT"),
    ],
)
def test_options_that_cannot_be_used_are_told_without_their_values(options, told):
    with pytest.raises(ConnectionSpecError, match="cannot be used") as error:
        connection(**options)
    assert told in str(error.value)
    assert "canary" not in str(error.value)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(ConnectionSpecError) as error:
        KafkaConnection.from_options("c", {"a": "1", "security.protocol": "x"})
    assert str(error.value).count(";") == 2


def test_what_other_consumers_need_is_passed_over_and_other_spellings_are_known():
    options = {"group.id": "g", "auto.offset.reset": "latest", "enable.auto.commit": "false"}
    assert connection(**options).options == PLAIN
    aliased = {
        "metadata.broker.list": "broker:9092",
        **{k: v for k, v in SASL.items() if k != "sasl.mechanism"},
    }
    del aliased["bootstrap.servers"]
    aliased["sasl.mechanisms"] = "SCRAM-SHA-512"
    assert KafkaConnection.from_options("c", aliased).options == SASL


def test_a_connection_s_text_holds_no_secret():
    assert "canary" not in repr(KafkaConnection.from_options("c", SASL))
