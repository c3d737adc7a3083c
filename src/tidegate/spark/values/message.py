"""Protobuf messages as plain values: what the executors' Python does, a value at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import DecodeError

from tidegate.spark.values.decoded import MISFIT

TIMESTAMP = "google.protobuf.Timestamp"
JSON_TYPES = frozenset(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))
_WRAPPED = ("Bool", "Bytes", "Double", "Float", "Int32", "Int64", "String", "UInt32", "UInt64")
WRAPPERS = frozenset(f"google.protobuf.{name}Value" for name in _WRAPPED)

_FRAME = 5  # bytes before a message that names its schema
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799  # of the years 1 to 9999
_CONTINUES = 0x80  # the bit of a byte after which a number goes on

Reader = Callable[[Any], Any]


@lru_cache(maxsize=16)
def find_message(descriptors: bytes, name: str) -> Descriptor:
    """Find a message in a compiled schema."""
    pool = descriptor_pool.DescriptorPool()
    for file in FileDescriptorSet.FromString(descriptors).file:
        pool.Add(file)
    return pool.FindMessageTypeByName(name)


@dataclass(frozen=True)
class MessageParser:
    """Parses values by one message of a schema."""

    descriptors: bytes
    message: str
    writers: Mapping[int, Mapping[tuple[int, ...], str]]
    subject: str

    def parse(self, value: bytes | None) -> tuple[str | None, dict[str, Any] | None]:
        """Parse a value: why it could not be, or what it is."""
        if value is None:
            return None, None
        if self.writers:
            reason, payload = self._unwrap(value)
            if reason:
                return reason, None
        else:
            payload = value
        message_class, read = self._reader
        try:
            return None, read(message_class.FromString(payload))
        except (DecodeError, ValueError):
            return MISFIT, None

    def __getstate__(self) -> dict[str, Any]:
        # Message classes are made anew wherever they are needed.
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @cached_property
    def _reader(self) -> tuple[Any, Reader]:
        found = find_message(self.descriptors, self.message)
        return message_factory.GetMessageClass(found), _read_message(found)

    def _unwrap(self, value: bytes) -> tuple[str | None, bytes]:
        """Take off the frame: a zero byte, the schema's id in four, which message of it."""
        if len(value) <= _FRAME or value[0]:
            return "the value names no schema", b""
        number = int.from_bytes(value[1:_FRAME], "big")
        if number not in self.writers:
            known = ", ".join(map(str, self.writers))
            return f"schema {number} is not one of {self.subject}: {known}", b""
        try:
            path, start = _read_path(value)
        except IndexError:
            return MISFIT, b""
        written = self.writers[number].get(path)
        if written != self.message:
            return f"the value is {written or f'message {path}'}, not {self.message}", b""
        return None, value[start:]


def _read_path(value: bytes) -> tuple[tuple[int, ...], int]:
    count, at = _read_number(value, _FRAME)
    if count == 0:
        return (0,), at  # short for the first message
    path = []
    for _ in range(count):
        number, at = _read_number(value, at)
        path.append(number)
    return tuple(path), at


def _read_number(value: bytes, at: int) -> tuple[int, int]:
    """Read a zigzag number, and say where it ends."""
    number = shift = 0
    while value[at] & _CONTINUES:
        number |= (value[at] & ~_CONTINUES) << shift
        at, shift = at + 1, shift + 7
    number |= value[at] << shift
    return (number >> 1) ^ -(number & 1), at + 1


def _read_timestamp(found: Any) -> int:
    if not _FIRST_SECOND <= found.seconds <= _LAST_SECOND:
        raise ValueError(found.seconds)
    return int(found.seconds * 1_000_000 + found.nanos // 1000)


def _read_message(message: Descriptor) -> Reader:
    readers = {field.name: _read_field(field) for field in message.fields}
    # Fields that can be told to be absent are null then; others have their default.
    present = {field.name for field in message.fields if field.has_presence}

    def read(found: Any) -> dict[str, Any]:
        return {
            name: None
            if name in present and not found.HasField(name)
            else reader(getattr(found, name))
            for name, reader in readers.items()
        }

    return read


def _read_field(field: Any) -> Reader:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        reader = _read_one(field.message_type.fields_by_name["value"])
        return lambda found: [(key, reader(found[key])) for key in found]
    reader = _read_one(field)
    return (lambda found: list(map(reader, found))) if field.is_repeated else reader


def _read_one(field: Any) -> Reader:
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, str(number))
    if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64:
        return Decimal
    if field.message_type is None:
        return lambda found: found
    name = field.message_type.full_name
    if name == TIMESTAMP:
        return _read_timestamp
    if name in JSON_TYPES:
        return lambda found: MessageToJson(found, indent=None)
    if name in WRAPPERS:
        reader = _read_one(field.message_type.fields_by_name["value"])
        return lambda found: reader(found.value)
    return _read_message(field.message_type)
