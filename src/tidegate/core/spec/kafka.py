"""Kafka as a source: which records, from where on, and what their values are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    NonNegativeInt,
    StringConstraints,
    WithJsonSchema,
)

from tidegate.core.spec.base import (
    Count,
    Duration,
    Moment,
    Options,
    SpecModel,
    check_pattern,
    is_true,
    refuse_truth,
)
from tidegate.core.spec.schema import Schema, parse_columns
from tidegate.core.spec.unknown import RESCUED, OnUnknown
from tidegate.core.spec.watermark import TimedSource

PROVENANCE = ("_topic", "_partition", "_offset", "_timestamp")
"""The columns that say which record a row came from."""

_TOPIC = r"[A-Za-z0-9._-]{1,249}"
_OF_CONNECTION = ("kafka.sasl.", "kafka.security.", "kafka.ssl.")
_MESSAGE = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"

ConnectionName = Annotated[
    str,
    check_pattern(r"[A-Za-z_][A-Za-z0-9_]{0,99}", "letters, digits and _, at most 100"),
    WithJsonSchema({"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,99}$"}),
]
"""The name of a connection in Airflow or in the environment; what is secret stays there."""

Topic = Annotated[
    str,
    check_pattern(_TOPIC, "letters, digits and . _ -, at most 249"),
    WithJsonSchema({"type": "string", "pattern": f"^{_TOPIC}$"}),
]
"""A topic's name."""

Position = Annotated[NonNegativeInt, BeforeValidator(refuse_truth)]
"""A partition's number or an offset in it."""


def _check_regex(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"must be a regular expression: {error}") from None
    return pattern


def list_names(given: Any) -> list[str]:
    """List what a list or a mapping that is not validated yet has; nothing where it is neither."""
    return [str(one) for one in given] if isinstance(given, list | tuple | Mapping) else []


def compile_pattern(pattern: Any) -> re.Pattern[str] | None:
    """Compile a pattern that is not validated yet; None where there is none or it is wrong."""
    try:
        return re.compile(pattern) if isinstance(pattern, str) and pattern else None
    except re.error:
        return None  # told by itself


def _check_schema_file(name: str) -> str:
    if name.startswith("/") or ".." in name.split("/") or ":" in name:
        raise ValueError("must be a path below the specs' folder, such as schemas/order.avsc")
    return name


def _refuse_connection_options(options: dict[str, str]) -> dict[str, str]:
    named = sorted(key for key in options if key.lower().startswith(_OF_CONNECTION))
    if named:
        raise ValueError(
            f"{', '.join(named)} belongs to the connection, which keeps what is secret; "
            "see docs/kafka.md"
        )
    return options


KafkaOptions = Annotated[Options, AfterValidator(_refuse_connection_options)]
"""Options of Spark's Kafka source or sink and its client; never how to reach the cluster."""


class Starting(StrEnum):
    """Where a first run begins."""

    EARLIEST = "earliest"
    LATEST = "latest"


class Isolation(StrEnum):
    """Whether records of open and aborted transactions are read."""

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


class ValueFormat(StrEnum):
    """What a record's key or value is."""

    JSON = "json"
    CSV = "csv"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    STRING = "string"
    BINARY = "binary"


_DDL = frozenset({ValueFormat.JSON, ValueFormat.CSV})
_COMPILED = frozenset({ValueFormat.AVRO, ValueFormat.PROTOBUF})


class OnMalformed(StrEnum):
    """What becomes of a value that does not parse."""

    QUARANTINE = "quarantine"
    FAIL = "fail"


class Decoding(SpecModel):
    """How the bytes of a value become columns."""

    format: ValueFormat
    value_schema: Schema | None = Field(
        default=None, alias="schema", description="Columns as Spark's DDL; for json and csv."
    )
    schema_file: Annotated[str, AfterValidator(_check_schema_file)] | None = Field(
        default=None,
        description="For avro and protobuf: a file with the schema, below the specs' folder.",
    )
    registry: ConnectionName | None = Field(
        default=None, description="For avro and protobuf: the connection to a schema registry."
    )
    subject: Annotated[str, StringConstraints(min_length=1)] | None = Field(
        default=None, description="The registry's subject; <topic>-value where none is named."
    )
    message: (
        Annotated[str, check_pattern(_MESSAGE, "a message's name, such as shop.Order")] | None
    ) = Field(default=None, description="For protobuf: the message, where the schema has several.")
    on_malformed: OnMalformed = Field(
        default=OnMalformed.QUARANTINE,
        description="quarantine keeps a value that does not parse beside the table, with its reason.",
    )
    on_unknown: OnUnknown | None = Field(
        default=None,
        description=f"For json: rescue keeps fields that the schema does not name in {RESCUED} "
        "(the default), evolve adds columns to the table, drop forgets them, fail stops the run.",
    )
    options: Options = Field(default_factory=dict, description="Options of the format.")

    @property
    def unknown_fields(self) -> OnUnknown:
        """What becomes of unknown fields, where the format can have any."""
        if self.format is not ValueFormat.JSON:
            return OnUnknown.DROP
        return self.on_unknown or OnUnknown.RESCUE

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        said = {key for key, value in given.items() if value is not None}
        known = next((known for known in ValueFormat if known == given.get("format")), None)
        if known in _DDL and "schema" not in said:
            yield f"format {known} needs a schema, such as 'id long, at timestamp'"
        if known and known not in _DDL and "schema" in said:
            yield f"format {known} takes no columns as DDL, so schema must go"
        written = {"schema_file", "registry"} & said
        if known in _COMPILED and len(written) != 1:
            yield f"format {known} needs exactly one of schema_file and registry"
        if known and known is not ValueFormat.PROTOBUF and "message" in said:
            yield f"format {known} has no messages, so message must go"
        if known and known not in _COMPILED and written:
            yield f"format {known} needs neither schema_file nor registry"
        options = given.get("options")
        keys = sorted(map(str, options)) if isinstance(options, Mapping) else []
        taken = [key for key in keys if key.lower() in ("mode", "columnnameofcorruptrecord")]
        if taken:
            yield f"options must not hold {', '.join(taken)}: on_malformed says what becomes of values"
        if "subject" in said and "registry" not in said:
            yield "subject goes with registry"
        if known and known is not ValueFormat.JSON and "on_unknown" in said:
            yield f"format {known} has no unknown fields, so on_unknown must go"


class KafkaSource(TimedSource):
    """The records of Kafka topics, each read once."""

    type: Literal["kafka"]
    connection: ConnectionName = Field(
        default="kafka_default", description="How to reach the cluster; see docs/kafka.md."
    )
    topics: tuple[Topic, ...] | None = Field(default=None, min_length=1)
    topic_pattern: Annotated[str, AfterValidator(_check_regex)] | None = Field(
        default=None,
        min_length=1,
        description="A regular expression; a topic is read if any part of its name matches.",
    )
    partitions: dict[Topic, Annotated[tuple[Position, ...], Field(min_length=1)]] | None = Field(
        default=None, min_length=1, description="Just these partitions of these topics."
    )
    starting: Starting | None = Field(
        default=None,
        description="earliest (the default) or latest. First run only; afterwards the checkpoint "
        "decides.",
    )
    starting_offsets: dict[Topic, dict[Position, Position]] | None = Field(
        default=None,
        min_length=1,
        description="Offsets by topic and partition; others begin at their earliest. First run only.",
    )
    starting_timestamp: Moment | None = Field(
        default=None, description="The first record of this time or later. First run only."
    )
    max_offsets_per_trigger: Count
    min_offsets_per_trigger: Count | None = Field(
        default=None, description="No run before so many records wait, or max_trigger_delay passed."
    )
    max_trigger_delay: Duration | None = Field(
        default=None,
        description="With min_offsets_per_trigger: a run this long after the last commit in any case.",
    )
    min_partitions: Count | None = Field(
        default=None, description="Split large partitions into at least so many tasks."
    )
    fail_on_data_loss: bool = Field(
        default=True,
        description="false goes on when records expired before they were read: they are lost.",
    )
    isolation: Isolation = Field(
        default=Isolation.READ_COMMITTED,
        description="read_uncommitted also reads what a transaction may yet take back.",
    )
    group_prefix: Annotated[str, check_pattern(_TOPIC, "letters, digits and . _ -")] | None = Field(
        default=None, description="Prefix of the consumer groups that Spark makes up."
    )
    value: Decoding
    key: Literal["binary", "string"] | None = Field(
        default=None, description="Add the record's key as the column key."
    )
    headers: bool = Field(default=False, description="Add the record's headers as headers.")
    provenance: bool = Field(
        default=True, description=f"Add {', '.join(PROVENANCE)}: which record a row is."
    )
    options: KafkaOptions = Field(
        default_factory=dict, description="Options of Spark's Kafka source and its consumer."
    )

    @property
    def may_be_malformed(self) -> bool:
        """Whether a record may not be what the spec says that it is."""
        return self.value.format is not ValueFormat.BINARY or self.key == "string"

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        said = {key for key, value in given.items() if value is not None}
        if len({"topics", "topic_pattern", "partitions"} & said) != 1:
            yield "needs exactly one of topics, topic_pattern and partitions"
        if len({"starting", "starting_offsets", "starting_timestamp"} & said) > 1:
            yield "takes one of starting, starting_offsets and starting_timestamp"
        if ("min_offsets_per_trigger" in said) != ("max_trigger_delay" in said):
            yield "min_offsets_per_trigger and max_trigger_delay go together"
        yield from cls._find_misplaced_starts(given)
        options = given.get("options")
        keys = sorted(map(str, options)) if isinstance(options, Mapping) else []
        if any(key.lower() == "kafka.enable.auto.commit" for key in keys):
            yield "options must not hold kafka.enable.auto.commit: the checkpoint keeps the position"
        taken = [key for key in keys if key.lower() in _TAKEN]
        if taken:
            yield f"options must not hold {', '.join(taken)}; the spec has fields for it"
        value = given.get("value")
        asked = value if isinstance(value, Mapping) else {}
        is_named = asked.get("subject") or not asked.get("registry")
        if not is_named and len(given.get("topics") or ()) != 1:
            yield "value.subject is required where more than one topic is read"
        clashing = cls._list_clashing_columns(given)
        if clashing:
            yield f"value.schema must not name {', '.join(clashing)}: tidegate adds it"

    @staticmethod
    def _find_misplaced_starts(given: Mapping[str, Any]) -> Iterator[str]:
        """Yield the topics and partitions that start somewhere and are not read."""
        starts, partitions = given.get("starting_offsets"), given.get("partitions")
        pattern = compile_pattern(given.get("topic_pattern"))
        if not isinstance(starts, Mapping):
            return
        named = set(list_names(given.get("topics"))) | set(list_names(partitions))
        others = [
            str(topic)
            for topic in starts
            if (named and str(topic) not in named) or (pattern and not pattern.search(str(topic)))
        ]
        if others:
            yield f"starting_offsets names {', '.join(others)}, which the source does not read"
        chosen = partitions if isinstance(partitions, Mapping) else {}
        unread = [
            f"{topic}-{number}"
            for topic, numbers in starts.items()
            for number in list_names(numbers)
            if number not in (list_names(chosen.get(topic)) or [number])
        ]
        if unread:
            yield f"starting_offsets names {', '.join(unread)}, which partitions leaves out"

    @staticmethod
    def _list_clashing_columns(given: Mapping[str, Any]) -> list[str]:
        value = given.get("value")
        schema = value.get("schema") if isinstance(value, Mapping) else None
        try:
            named = {column.lower() for column in parse_columns(str(schema))}
        except ValueError:
            return []
        added = list(PROVENANCE) if is_true(given.get("provenance", True)) else []
        added += ["key"] if given.get("key") else []
        added += ["headers"] if is_true(given.get("headers")) else []
        return [column for column in [*added, RESCUED] if column in named]


_TAKEN = frozenset(
    "subscribe subscribepattern assign startingoffsets startingtimestamp endingoffsets "
    "startingoffsetsbytimestamp maxoffsetspertrigger minoffsetspertrigger maxtriggerdelay "
    "minpartitions failondataloss includeheaders groupidprefix kafka.group.id "
    "kafka.isolation.level kafka.bootstrap.servers kafka.auto.offset.reset "
    "kafka.key.deserializer kafka.value.deserializer".split()
)
