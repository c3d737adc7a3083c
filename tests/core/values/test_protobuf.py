"""Protobuf schemas, compiled from files and from what a registry has."""

import pytest

from tidegate.core.errors import SourceError
from tidegate.core.spec.kafka import Decoding
from tidegate.core.values.protobuf import resolve_protobuf
from tidegate.core.values.registry import Subject, Version
from tidegate.core.values.schemas import read_schema_file

ORDER = """
syntax = "proto3";
package shop;
message Order {
  int64 id = 1;
  map<string, string> labels = 2;
  message Line { string product = 1; }
  repeated Line lines = 3;
}
"""
PRICED = """
syntax = "proto3";
package shop;
import "shop/money.proto";
message Priced { Money price = 1; }
"""
MONEY = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'


def decoding(**parts):
    return Decoding.model_validate({"format": "protobuf", **parts})


def read(folder, text, **parts):
    (folder / "x.proto").write_text(text)
    return read_schema_file(decoding(schema_file="x.proto", **parts), folder)


def test_the_only_message_of_a_file_needs_no_name(tmp_path):
    assert read(tmp_path, ORDER).message == "shop.Order"


@pytest.mark.parametrize("named", ["shop.Order.Line", "Order.Line"])
def test_a_message_is_named_with_or_without_its_package(tmp_path, named):
    assert read(tmp_path, ORDER, message=named).message == "shop.Order.Line"


def test_imports_are_found_below_the_folder_of_the_specs(tmp_path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/money.proto").write_text(MONEY)
    assert read(tmp_path, PRICED).message == "shop.Priced"


def test_a_schema_may_be_compiled_already(tmp_path):
    compiled = read(tmp_path, ORDER).descriptors
    (tmp_path / "x.desc").write_bytes(compiled)
    assert read_schema_file(decoding(schema_file="x.desc"), tmp_path).message == "shop.Order"


@pytest.mark.parametrize(
    ("text", "parts", "told"),
    [
        ("message {", {}, r"x\.proto is not a Protobuf schema: .*x\.proto:1:.* Correct it"),
        (PRICED, {}, r"shop/money\.proto: File not found"),
        (ORDER + MONEY.partition("shop;")[2], {}, r"has 2 messages\..*shop\.Order, .*shop\.Money"),
        ('syntax = "proto3";', {}, r"has 0 messages\..*none at all"),
        (ORDER, {"message": "Nope"}, r"has no message 'Nope'\..*shop\.Order\.Line"),
    ],
)
def test_a_schema_that_cannot_be_used_is_told(tmp_path, text, parts, told):
    with pytest.raises(SourceError, match=told):
        read(tmp_path, text, **parts)


def test_a_file_that_is_no_schema_is_told(tmp_path):
    (tmp_path / "x.desc").write_bytes(b"nothing of the kind")
    with pytest.raises(SourceError, match=r"neither named \.proto nor a descriptor set"):
        read_schema_file(decoding(schema_file="x.desc"), tmp_path)
    with pytest.raises(SourceError, match="cannot be read: No such file"):
        read_schema_file(decoding(schema_file="y.proto"), tmp_path)


def test_versions_are_read_by_the_newest_and_know_their_own_messages():
    older = Version(1, ORDER, {})
    newer = Version(2, PRICED, {"shop/money.proto": MONEY})
    schemas = resolve_protobuf(Subject("orders", (older, newer)), None)
    assert schemas.message == "shop.Priced"
    assert schemas.writers == {
        1: {(0,): "shop.Order", (0, 1): "shop.Order.Line"},
        2: {(0,): "shop.Priced"},
    }


def test_a_version_that_imports_from_elsewhere_is_refused():
    version = Version(1, ORDER, {"../../money.proto": MONEY})
    with pytest.raises(SourceError, match="is no path below a folder"):
        resolve_protobuf(Subject("orders", (version,)), None)
