"""Schemas of values from a Confluent-compatible schema registry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError

from tidegate.core.connection import ReadConnection, read_connection
from tidegate.core.errors import ConnectionSpecError, SourceAwayError, SourceError
from tidegate.core.spec.kafka import Decoding

_URL = re.compile(r"https?://[^@/\s]+(/[^@\s]*)?")
_ALLOWED = frozenset(
    {
        "url",
        "basic.auth.user.info",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
    }
)


@dataclass(frozen=True)
class Version:
    """One version of a subject's schema."""

    schema_id: int
    text: str
    imports: Mapping[str, str]
    """The schemas that it refers to, by the names that it calls them."""


@dataclass(frozen=True)
class Subject:
    """All versions of what a registry says about the values of a topic, the newest last."""

    name: str
    versions: tuple[Version, ...]


def read_subject(decoding: Decoding, topic: str, read: ReadConnection = read_connection) -> Subject:
    """Read every version of the subject that a spec means."""
    connection = decoding.registry or ""
    name = decoding.subject or f"{topic}-value"
    client = _open_client(connection, read(connection))
    try:
        found = [client.get_version(name, number) for number in sorted(client.get_versions(name))]
        versions = tuple(
            Version(
                int(version.schema_id or 0),
                _check_kind(version, decoding.format, name),
                _read_references(client, version.schema),
            )
            for version in found
        )
    except SchemaRegistryError as error:
        raise SourceError(
            f"The schema registry of the connection {connection!r} says: "
            f"{error.error_message.rstrip('.')}.",
            remedy=f"Register a schema for the subject {name!r}, or correct value.subject.",
        ) from error
    except SourceError:
        raise
    except Exception as error:
        # Its HTTP library has errors of its own, which are no part of its interface.
        raise SourceAwayError(
            f"The schema registry of the connection {connection!r} does not answer: {error}.",
            remedy="Start it, or correct the connection; then run again.",
        ) from error
    return Subject(name, versions)


def _check_kind(version: Any, wanted: str, subject: str) -> str:
    kind = str(version.schema.schema_type).lower()
    if kind != wanted:
        raise SourceError(
            f"Version {version.version} of the subject {subject!r} is {kind}, and the spec says "
            f"{wanted}.",
            remedy="Correct value.format or value.subject in the spec.",
        )
    return str(version.schema.schema_str)


def _read_references(client: SchemaRegistryClient, schema: Any) -> dict[str, str]:
    texts: dict[str, str] = {}
    for reference in schema.references or ():
        found = client.get_version(reference.subject, reference.version).schema
        if found is not None:
            texts |= {reference.name: str(found.schema_str), **_read_references(client, found)}
    return texts


def _open_client(name: str, options: Mapping[str, str]) -> SchemaRegistryClient:
    unknown = sorted(options.keys() - _ALLOWED)
    problems = [f"it has {', '.join(unknown)}"] if unknown else []
    if "url" not in options:
        problems.append("url is missing")
    elif not _URL.fullmatch(options["url"]):
        # What it is, is not told: it may hold a password.
        problems.append(
            "url must be http://… or https://…, without a user; that is basic.auth.user.info"
        )
    if problems:
        raise ConnectionSpecError(
            f"The connection {name!r} cannot be used for a schema registry: {'; '.join(problems)}.",
            remedy=f"Allowed are {', '.join(sorted(_ALLOWED))}.",
        )
    try:
        return SchemaRegistryClient(dict(options))
    except Exception as error:
        raise ConnectionSpecError(
            f"The connection {name!r} cannot be used for a schema registry: its client refuses it "
            f"({type(error).__name__}).",
            remedy="Correct its url, user or certificates.",
        ) from None
