"""A Kafka broker on this machine, for the demo and the tests: KRaft, one node, loopback only."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

_START_TIMEOUT_SECONDS = 90
_STOP_TIMEOUT_SECONDS = 30
_MEMORY = "-Xmx512m"


class BrokerError(Exception):
    """The broker did not start."""


@dataclass
class Broker:
    """One Kafka broker, with its data below a folder of its own."""

    folder: Path
    jars: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings beyond the few that every broker needs."""
    port: int = field(init=False)
    controller_port: int = field(init=False)
    process: subprocess.Popen[bytes] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.port, self.controller_port = find_free_ports(2)

    @property
    def address(self) -> str:
        """Where clients reach it."""
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        """Where all of its output goes."""
        return self.folder / "broker.log"

    def start(self) -> None:
        """Start it, on the data that it has, and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = self._list_settings(self.folder / "data")
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self._format()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._java("kafka.Kafka", str(self._properties)),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_TIMEOUT_SECONDS
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise BrokerError(f"Kafka did not start; {self.log} tells why.")

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Stop it, or kill it; its data stays."""
        if self.process is None:
            return
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, number)
        try:
            self.process.wait(_STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _format(self) -> None:
        data = self.folder / "data"
        if data.exists():
            return
        data.mkdir()
        formatted = subprocess.run(
            self._java(
                "kafka.tools.StorageTool",
                *("format", "--cluster-id", uuid4().hex[:22], "--config", str(self._properties)),
            ),
            capture_output=True,
            text=True,
            check=False,
        )
        if formatted.returncode:
            shutil.rmtree(data)
            raise BrokerError(f"Kafka's storage cannot be formatted: {formatted.stderr[-500:]}")

    def _list_settings(self, data: Path) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://{self.address},"
            f"CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(data),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            "log.retention.check.interval.ms": "1000",
            **self.settings,
        }

    def _java(self, *arguments: str) -> list[str]:
        home = os.environ.get("JAVA_HOME")
        java = f"{home}/bin/java" if home else "java"
        return [java, _MEMORY, "-cp", f"{self.jars}/*", *arguments]

    def _answers(self) -> bool:
        client = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        try:
            client.list_topics(timeout=1)
        except KafkaException:
            return False
        return True


def find_free_ports(count: int) -> list[int]:
    """Find ports that nobody listens on, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
