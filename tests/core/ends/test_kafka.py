"""What a cluster's client refuses before it asks anything."""

import pytest

from tidegate.core.connection import KafkaConnection
from tidegate.core.ends.kafka import KafkaEnds
from tidegate.core.errors import ConnectionSpecError


def ask(**files):
    options = {"bootstrap.servers": "127.0.0.1:9", "security.protocol": "SSL"}
    files = {f"ssl.{name}.location": str(file) for name, file in files.items()}
    return KafkaEnds(KafkaConnection.from_options("c", options | files))


def test_a_certificate_that_is_not_there_is_told():
    with pytest.raises(ConnectionSpecError, match=r"'c' names a file as ssl\.ca\.location that"):
        ask(ca="/no/such/file")


def test_a_certificate_that_is_none_is_told(tmp_path):
    file = tmp_path / "ca.pem"
    file.write_text("nonsense")
    with pytest.raises(ConnectionSpecError, match=r"refuses it \(ssl\.ca\.location failed.* PEM"):
        ask(ca=file)
    with pytest.raises(
        ConnectionSpecError, match=r"refuses it \(ssl\.certificate\.location failed"
    ):
        ask(certificate=file, key=file)
