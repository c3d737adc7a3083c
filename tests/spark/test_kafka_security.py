"""TLS and passwords: one definition for both clients, and the password nowhere to be read."""

import json
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from demo.broker import Broker, find_free_ports
from tests.kafka_cluster import Cluster
from tidegate.core.ledger import Decision

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "canary-7f3a9"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


class Authority:
    """Signs certificates, and writes them as PEM files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._key = rsa.generate_private_key(65537, 2048)
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self._certificate = self._sign(self._name, self._key.public_key(), is_authority=True)
        (folder / "ca.pem").write_bytes(_to_pem(self._certificate))

    def issue(self, name: str) -> tuple[Path, Path]:
        """Write a certificate and its key, and return both files."""
        key = rsa.generate_private_key(65537, 2048)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._sign(subject, key.public_key(), is_authority=False)
        files = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        files[0].write_bytes(_to_pem(certificate))
        files[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return files

    def _sign(self, subject, public_key, *, is_authority):
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name)
        builder = builder.public_key(public_key).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(hours=1))
        builder = builder.not_valid_after(now + timedelta(days=1))
        builder = builder.add_extension(
            x509.BasicConstraints(ca=is_authority, path_length=None), critical=True
        )
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        builder = builder.add_extension(names, critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _to_pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """A broker that wants TLS, a certificate and a password, and the options that have them."""
    folder = tmp_path_factory.mktemp("secured")
    authority = Authority(folder)
    certificate, key = authority.issue("server")
    (folder / "keystore.pem").write_bytes(key.read_bytes() + certificate.read_bytes())
    broker = Broker(folder / "broker", ROOT / "jars" / "broker")
    (port,) = find_free_ports(1)
    plain, controller = f"PLAINTEXT://{broker.address}", f"127.0.0.1:{broker.controller_port}"
    broker.settings = {
        "listeners": f"{plain},CONTROLLER://{controller},SASL_SSL://127.0.0.1:{port}",
        "advertised.listeners": f"{plain},SASL_SSL://127.0.0.1:{port}",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL"
        ),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": (
            f'{_PLAIN} required user_etl="{PASSWORD}";'
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "keystore.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "listener.name.sasl_ssl.ssl.client.auth": "required",
    }
    client, client_key = authority.issue("client")
    options = {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "etl",
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(folder / "ca.pem"),
        "ssl.certificate.location": str(client),
        "ssl.key.location": str(client_key),
    }
    broker.start()
    yield Cluster(broker), options
    broker.stop()


@pytest.fixture
def pipeline(secured, pipeline_of):
    cluster, _ = secured
    topic = cluster.create()
    cluster.produce(topic, [{"id": 1}, b"{"])
    value = {"format": "json", "schema": "id long"}
    source = {"type": "kafka", "topics": [topic], "max_offsets_per_trigger": 5, "value": value}
    return pipeline_of(source)


def test_both_clients_get_in_and_the_password_is_written_nowhere(
    secured, pipeline, runs, rows_of, tmp_path, monkeypatch, capfd
):
    monkeypatch.setenv("TIDEGATE_CONN_KAFKA_DEFAULT", json.dumps(secured[1]))
    run = runs.run(pipeline)
    assert rows_of("out", "id") == [(1,)]
    assert run.summary.quarantined == 1
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert written
    assert [file for file in written if PASSWORD.encode() in file.read_bytes()] == []
    assert PASSWORD not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"sasl.password": "canary-wrong"}, "Authentication failed"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "No broker of the connection"),
    ],
)
def test_what_the_cluster_refuses_is_told_without_a_secret(
    secured, pipeline, runs, monkeypatch, wrong, told
):
    monkeypatch.setattr("tidegate.core.ends.kafka._TIMEOUT_SECONDS", 5.0)
    monkeypatch.setenv("TIDEGATE_CONN_KAFKA_DEFAULT", json.dumps(secured[1] | wrong))
    plan = runs.plan(pipeline)
    assert plan.decision is Decision.BLOCKED
    assert told in plan.reason
    assert "canary" not in plan.reason
