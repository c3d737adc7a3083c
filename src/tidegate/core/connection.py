"""How to reach a service: options by name, from the environment, never from a spec.

A connection is a mapping of options. For Kafka it is spelled as librdkafka and Airflow's Kafka
provider spell it, and translated for Spark's Java client, so that one definition serves both. For a
database it is spelled as libpq spells it; see database.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tidegate.core.errors import ConnectionSpecError
from tidegate.core.storage import leave_json

HANDED_OVER = "TIDEGATE_CONNECTIONS_FILE"
"""Names a file of connections that a submitter leaves for its driver."""

ReadConnection = Callable[[str], Mapping[str, str]]
"""Finds a connection's options by its name."""

EXAMPLES = (
    """{"bootstrap.servers": "localhost:9092"} for Kafka or """
    """{"host": "localhost", "dbname": "sales", "user": "etl", "password": "…"} for a database"""
)
"""How options look, for those who have none yet."""

_DATABASES = frozenset({"postgres", "postgresql"})
_MECHANISMS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_KNOWN = frozenset(
    {
        "bootstrap.servers",
        "client.id",
        "sasl.mechanism",
        "sasl.password",
        "sasl.username",
        "security.protocol",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.location",
        "ssl.key.password",
    }
)
_FILES = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")
_CREDENTIALS = frozenset({"sasl.password", "sasl.username"})
# Airflow's Kafka connections often have these; they are for consumers that keep offsets in Kafka.
_NEEDLESS = frozenset({"auto.offset.reset", "enable.auto.commit", "group.id"})
_ALIASES = {"sasl.mechanisms": "sasl.mechanism", "metadata.broker.list": "bootstrap.servers"}


def read_connection(name: str, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Find a connection: what the submitter left, then TIDEGATE_CONN_* or AIRFLOW_CONN_*."""
    env = os.environ if environment is None else environment
    handed_over = _read_handed_over(env.get(HANDED_OVER))
    if name in handed_over:
        return handed_over[name]
    for prefix in ("TIDEGATE_CONN_", "AIRFLOW_CONN_"):
        variable = f"{prefix}{name.upper()}"
        if variable in env:
            return _parse_variable(variable, env[variable])
    raise ConnectionSpecError(
        f"There is no connection {name!r}.",
        cause="Neither Airflow nor the environment has it.",
        remedy=f"Create it in Airflow, or set TIDEGATE_CONN_{name.upper()}='…' to its options as "
        f"JSON, such as {EXAMPLES}.",
    )


def parse_fields(fields: Mapping[str, Any]) -> dict[str, str]:
    """Take a connection's options from the fields that Airflow keeps of it."""
    extra, host, port = fields.get("extra") or {}, fields.get("host"), fields.get("port")
    if fields.get("conn_type") not in _DATABASES:
        return parse_connection(extra, f"{host}:{port}" if host and port else host)
    named = {
        "host": host,
        "port": port,
        "user": fields.get("login"),
        "password": fields.get("password"),
        "dbname": fields.get("schema"),
    }
    return parse_connection(extra | {key: value for key, value in named.items() if value})


def parse_connection(extra: Mapping[str, object], host: str | None = None) -> dict[str, str]:
    """Spell options as texts; a host alone is Kafka's first server."""
    options = {
        str(key): str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in extra.items()
        if value is not None
    }
    if host and not {"bootstrap.servers", "url"} & set(options):
        options["bootstrap.servers"] = host
    return options


@contextmanager
def hand_over(names: Iterable[str], read: ReadConnection) -> Iterator[dict[str, str]]:
    """Leave connections for a driver, as long as it runs."""
    connections = {name: dict(read(name)) for name in names}
    if not connections:
        yield {}
        return
    with leave_json("connections.json", connections) as file:
        yield {HANDED_OVER: str(file)}


def _parse_variable(variable: str, text: str) -> dict[str, str]:
    try:
        value = _parse_uri(text) or json.loads(text)
        if isinstance(value, dict) and isinstance(value.get("extra"), str):
            value["extra"] = json.loads(value["extra"] or "{}")
    except (ValueError, TypeError):
        value = None
    if not isinstance(value, dict) or not isinstance(value.get("extra") or {}, dict):
        # The text itself is not told: it may hold a password.
        raise ConnectionSpecError(
            f"The variable {variable} does not hold a JSON object.",
            remedy=f"Set it to options such as {EXAMPLES}.",
        )
    return parse_fields(value) if "conn_type" in value else parse_connection(value)


def _parse_uri(text: str) -> dict[str, Any] | None:
    """Take apart a database's address as Airflow and libpq write it; None if it is something else."""
    scheme = text.partition("://")[0]
    if scheme not in _DATABASES:
        return None
    uri = urlsplit(text)
    extra = dict(parse_qsl(uri.query))
    extra |= json.loads(extra.pop("__extra__", "{}"))
    return {
        "conn_type": scheme,
        "host": unquote(uri.hostname or ""),
        "port": uri.port,
        "login": unquote(uri.username or ""),
        "password": unquote(uri.password or ""),
        "schema": unquote(uri.path.removeprefix("/")),
        "extra": extra,
    }


def _read_handed_over(file: str | None) -> dict[str, dict[str, str]]:
    if not file:
        return {}
    try:
        return json.loads(Path(file).read_text(encoding="utf-8"))  # type: ignore[no-any-return]
    except FileNotFoundError:
        return {}


@dataclass(frozen=True)
class KafkaConnection:
    """How to reach a Kafka cluster, for clients of both kinds."""

    name: str
    options: Mapping[str, str] = field(repr=False)

    @classmethod
    def from_options(cls, name: str, given: Mapping[str, str]) -> KafkaConnection:
        """Check a connection's options; all mistakes at once, no value told."""
        options = {_ALIASES.get(key, key): value for key, value in given.items()}
        problems = list(_find_problems(options))
        if problems:
            raise ConnectionSpecError(
                f"The connection {name!r} cannot be used: {'; '.join(problems)}.",
                remedy="Correct it in Airflow or in the environment.",
            )
        return cls(name, {key: options[key] for key in options if key not in _NEEDLESS})

    def check_files(self) -> None:
        """Refuse certificates and keys that cannot be read, which a client tells in riddles."""
        for option in _FILES:
            if option in self.options:
                self._read_pem(option)

    def to_librdkafka(self) -> dict[str, str]:
        """Spell it for the client without a JVM."""
        return dict(self.options)

    def to_java(self) -> dict[str, str]:
        """Spell it for Kafka's Java client; certificates go along as text, for the executors."""
        options = self.options
        spelled = {
            key: options[key]
            for key in (
                "bootstrap.servers",
                "client.id",
                "security.protocol",
                "sasl.mechanism",
                "ssl.endpoint.identification.algorithm",
                "ssl.key.password",
            )
            if key in options
        }
        if spelled.get("ssl.endpoint.identification.algorithm") == "none":
            spelled["ssl.endpoint.identification.algorithm"] = ""
        if "sasl.username" in options:
            spelled["sasl.jaas.config"] = self._spell_jaas()
        if "ssl.ca.location" in options:
            spelled["ssl.truststore.type"] = "PEM"
            spelled["ssl.truststore.certificates"] = self._read_pem("ssl.ca.location")
        if "ssl.certificate.location" in options:
            spelled["ssl.keystore.type"] = "PEM"
            spelled["ssl.keystore.certificate.chain"] = self._read_pem("ssl.certificate.location")
            spelled["ssl.keystore.key"] = self._read_pem("ssl.key.location")
        return spelled

    def _spell_jaas(self) -> str:
        module = _MECHANISMS[self.options["sasl.mechanism"]]
        user, password = (
            self.options[key].replace("\\", "\\\\").replace('"', '\\"')
            for key in ("sasl.username", "sasl.password")
        )
        return f'{module} required username="{user}" password="{password}";'

    def _read_pem(self, option: str) -> str:
        try:
            return Path(self.options[option]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConnectionSpecError(
                f"The connection {self.name!r} names a file as {option} that cannot be read: "
                f"{getattr(error, 'strerror', 'it is no text, and so not PEM')}.",
                remedy="Put the file there, on every machine that plans runs or starts drivers.",
            ) from error


def _find_problems(options: Mapping[str, str]) -> list[str]:
    problems = []
    if not options.get("bootstrap.servers"):
        problems.append("bootstrap.servers is missing")
    unknown = sorted(options.keys() - _KNOWN - _NEEDLESS)
    if unknown:
        known = ", ".join(sorted(_KNOWN))
        problems.append(f"it has {', '.join(unknown)}, and allowed are {known}")
    if options.get("enable.auto.commit", "false").lower() == "true":
        problems.append(
            "enable.auto.commit is true, and the checkpoint alone keeps the position of a stream"
        )
    protocol = options.get("security.protocol", "PLAINTEXT")
    if protocol.upper() not in _PROTOCOLS:
        problems.append(f"security.protocol must be one of {', '.join(_PROTOCOLS)}")
    needs = []
    if protocol.upper().startswith("SASL"):
        needs = ["sasl.mechanism", "sasl.username", "sasl.password"]
        mechanism = options.get("sasl.mechanism")
        if mechanism and mechanism not in _MECHANISMS:
            problems.append(f"sasl.mechanism must be one of {', '.join(_MECHANISMS)}")
    elif _CREDENTIALS & options.keys():
        problems.append(
            f"it has {', '.join(sorted(_CREDENTIALS & options.keys()))}, which security.protocol "
            "PLAINTEXT and SSL do not send; set it to SASL_SSL or SASL_PLAINTEXT"
        )
    if "ssl.certificate.location" in options:
        needs.append("ssl.key.location")
    missing = [key for key in needs if not options.get(key)]
    if missing:
        problems.append(f"it also needs {', '.join(missing)}")
    return problems
