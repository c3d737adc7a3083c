"""The schemas of a spec's values, of whatever format."""

from __future__ import annotations

from pathlib import Path

from tidegate.core.connection import ReadConnection, read_connection
from tidegate.core.errors import SourceError
from tidegate.core.spec.kafka import Decoding, ValueFormat
from tidegate.core.values.avro import AvroSchemas, check_avro, resolve_avro
from tidegate.core.values.protobuf import (
    ProtobufSchemas,
    compile_file,
    load_descriptors,
    resolve_protobuf,
)
from tidegate.core.values.registry import read_subject

Schemas = AvroSchemas | ProtobufSchemas


def load_schemas(
    decoding: Decoding, folder: Path, topic: str, read: ReadConnection = read_connection
) -> Schemas | None:
    """Load the schemas of values; None where the spec itself has the columns."""
    if decoding.schema_file:
        return read_schema_file(decoding, folder)
    if not decoding.registry:
        return None
    subject = read_subject(decoding, topic, read)
    if decoding.format is ValueFormat.AVRO:
        return resolve_avro(subject)
    return resolve_protobuf(subject, decoding.message)


def read_schema_file(decoding: Decoding, folder: Path) -> Schemas:
    """Read the schema that a spec has in a file."""
    file = folder / (decoding.schema_file or "")
    try:
        content = file.read_bytes()
        if decoding.format is ValueFormat.AVRO:
            return AvroSchemas(check_avro(content.decode()))
        if file.suffix == ".proto":
            return ProtobufSchemas.of(compile_file(file, folder), decoding.message)
        return ProtobufSchemas.of(load_descriptors(content, file), decoding.message)
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(
            f"The schema file {file} cannot be read: {getattr(error, 'strerror', error)}.",
            remedy="Put it beside the specs, or correct value.schema_file in the spec.",
        ) from error
