"""Schemas of Protobuf values: compiled once, read by the newest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.message import DecodeError

from tidegate.core.errors import SourceError
from tidegate.core.values.registry import Subject, Version

MessagePath = tuple[int, ...]
"""Which message of a file: its number, and its number inside that one, and so on."""


@dataclass(frozen=True)
class ProtobufSchemas:
    """How values were written, and how they are read."""

    descriptors: bytes
    """The compiled schema that gives the columns, with all that it imports."""
    message: str
    """The message in it, by its full name."""
    writers: Mapping[int, Mapping[MessagePath, str]] = field(default_factory=dict)
    """The messages of each version by its id; empty where values carry no id."""
    subject: str = ""

    @classmethod
    def of(cls, compiled: FileDescriptorSet, message: str | None) -> ProtobufSchemas:
        """Read values by one compiled schema."""
        return cls(compiled.SerializeToString(), _choose_message(compiled, message))


def resolve_protobuf(subject: Subject, message: str | None) -> ProtobufSchemas:
    """Read all versions of a subject by the newest."""
    compiled = {version.schema_id: _compile_version(version) for version in subject.versions}
    newest = compiled[subject.versions[-1].schema_id]
    return ProtobufSchemas(
        newest.SerializeToString(),
        _choose_message(newest, message),
        {number: dict(_list_messages(files.file[-1])) for number, files in compiled.items()},
        subject.name,
    )


def compile_file(file: Path, folder: Path) -> FileDescriptorSet:
    """Compile a .proto file; its imports are found beside it or below the specs' folder."""
    return _compile(file.name, [file.parent, folder], str(file))


def load_descriptors(content: bytes, file: Path) -> FileDescriptorSet:
    """Read a schema that was compiled already, by protoc --include_imports."""
    try:
        compiled = FileDescriptorSet.FromString(content)
    except DecodeError:
        compiled = FileDescriptorSet()
    if not compiled.file:
        raise SourceError(
            f"The schema file {file} is neither named .proto nor a descriptor set.",
            remedy="Give a .proto file, or what protoc --include_imports "
            "--descriptor_set_out writes.",
        )
    return compiled


def _compile_version(version: Version) -> FileDescriptorSet:
    name = f"schema_{version.schema_id}.proto"
    with TemporaryDirectory(prefix="tidegate-") as folder:
        for path, text in {**version.imports, name: version.text}.items():
            file = (Path(folder) / path).resolve()
            if not file.is_relative_to(Path(folder).resolve()):
                raise SourceError(
                    f"Schema {version.schema_id} imports {path!r}, which is no path below a folder.",
                    remedy="Register it with references by plain paths.",
                )
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return _compile(name, [Path(folder)], f"schema {version.schema_id}")


def _compile(name: str, folders: Iterable[Path], told: str) -> FileDescriptorSet:
    includes = [f"-I{folder}" for folder in dict.fromkeys(folders)]
    with TemporaryDirectory(prefix="tidegate-") as scratch:
        output = Path(scratch) / "schema.desc"
        flags = ["--include_imports", f"--descriptor_set_out={output}"]
        done = subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", *includes, *flags, name],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SourceError(
                f"{told} is not a Protobuf schema: {' '.join(done.stderr.split())}",
                remedy="Correct it, or value.schema_file in the spec.",
            )
        return FileDescriptorSet.FromString(output.read_bytes())


def _choose_message(compiled: FileDescriptorSet, wanted: str | None) -> str:
    file = compiled.file[-1]  # protoc puts what is imported first
    top = [_join(file.package, message.name) for message in file.message_type]
    if wanted is None and len(top) == 1:
        return top[0]
    known = [name for part in compiled.file for _, name in _list_messages(part)]
    names = (wanted, _join(file.package, wanted or ""))
    found = next((name for name in names if name in known), None)
    if found is None:
        fact = f"has no message {wanted!r}" if wanted else f"has {len(top)} messages"
        raise SourceError(
            f"The Protobuf schema {fact}.",
            remedy=f"Name one as value.message; it has {', '.join(known) or 'none at all'}.",
        )
    return found


def _list_messages(file: FileDescriptorProto) -> Iterator[tuple[MessagePath, str]]:
    yield from _walk(file.message_type, (), file.package)


def _walk(
    messages: Sequence[DescriptorProto], path: MessagePath, prefix: str
) -> Iterator[tuple[MessagePath, str]]:
    for number, message in enumerate(messages):
        if message.options.map_entry:
            continue
        name = _join(prefix, message.name)
        yield (*path, number), name
        yield from _walk(message.nested_type, (*path, number), name)


def _join(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
