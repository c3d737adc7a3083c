"""Schemas of Avro values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.core.errors import SourceError
from tidegate.core.values.registry import Subject


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


def resolve_avro(subject: Subject) -> AvroSchemas:
    """Read all versions of a subject by the newest."""
    for version in subject.versions:
        if version.imports:
            raise SourceError(
                f"Schema {version.schema_id} of {subject.name} refers to others "
                f"({', '.join(version.imports)}), which Spark's Avro reader cannot resolve.",
                remedy="Register the schema with its parts written out.",
            )
    texts = {version.schema_id: check_avro(version.text) for version in subject.versions}
    return AvroSchemas(texts[subject.versions[-1].schema_id], texts, subject.name)


def check_avro(text: str) -> str:
    """Refuse what is not the schema of a record."""
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
