"""Schemas of values: from a file beside the specs, or from a Confluent-compatible schema registry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient, SchemaRegistryError

from tidegate.core.connection import ReadConnection, read_connection
from tidegate.core.errors import ConnectionSpecError, SourceAwayError, SourceError
from tidegate.core.spec.kafka import Decoding

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
class AvroSchemas:
    """How values were written, and how they are read."""

    reader: str
    """The schema that gives the columns."""
    writers: Mapping[int, str] = field(default_factory=dict)
    """Each version of the subject by its id; empty where values carry no id."""
    subject: str = ""

    @property
    def fields(self) -> list[dict[str, Any]]:
        """The fields of the reader's schema."""
        return list(json.loads(self.reader)["fields"])


def load_avro(
    decoding: Decoding, folder: Path, topic: str, read: ReadConnection = read_connection
) -> AvroSchemas:
    """Load the schemas of Avro values."""
    if decoding.schema_file:
        return AvroSchemas(read_avro_file(folder / decoding.schema_file))
    name = decoding.registry or ""
    subject = decoding.subject or f"{topic}-value"
    client = _open_client(name, read(name))
    try:
        versions = [
            client.get_version(subject, version) for version in client.get_versions(subject)
        ]
    except SchemaRegistryError as error:
        raise SourceError(
            f"The schema registry of the connection {name!r} says: "
            f"{error.error_message.rstrip('.')}.",
            remedy=f"Register a schema for the subject {subject!r}, or correct value.subject.",
        ) from error
    except Exception as error:
        # Its HTTP library has errors of its own, which are no part of its interface.
        raise SourceAwayError(
            f"The schema registry of the connection {name!r} does not answer: {error}.",
            remedy="Start it, or correct the connection; then run again.",
        ) from error
    texts = {
        int(version.schema_id or 0): _check_avro(str(version.schema.schema_str))
        for version in versions
        if version.schema is not None
    }
    newest = max(versions, key=lambda version: int(version.version or 0))
    return AvroSchemas(texts[int(newest.schema_id or 0)], texts, subject)


def read_avro_file(file: Path) -> str:
    """Read the Avro schema of a record from a file."""
    try:
        return _check_avro(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(
            f"The schema file {file} cannot be read: {error.strerror}.",
            remedy="Put it beside the specs, or correct value.schema_file in the spec.",
        ) from error


def _check_avro(text: str) -> str:
    try:
        schema = json.loads(text)
    except ValueError:
        schema = None
    is_record = isinstance(schema, dict) and schema.get("type") == "record"
    if not is_record or not schema.get("fields"):
        raise SourceError(
            f"{text[:60]!r} is not the Avro schema of a record.",
            remedy='Give a record with fields: {"type": "record", "name": …, "fields": […]}.',
        )
    return text


def _open_client(name: str, options: Mapping[str, str]) -> SchemaRegistryClient:
    unknown = sorted(options.keys() - _ALLOWED)
    if "url" not in options or unknown:
        what = f"it has {', '.join(unknown)}" if unknown else "url is missing"
        raise ConnectionSpecError(
            f"The connection {name!r} cannot be used for a schema registry: {what}.",
            remedy=f"Allowed are {', '.join(sorted(_ALLOWED))}.",
        )
    return SchemaRegistryClient(dict(options))
