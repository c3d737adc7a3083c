"""Airflow on this machine: started, watched and stopped as one thing."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from tidegate.core.settings import Settings

_START_TIMEOUT_SECONDS = 240
_STOP_TIMEOUT_SECONDS = 30
_PORTS: tuple[int, ...] = (8080, *range(9080, 9180))


class StackError(Exception):
    """Airflow did not start, or did not stop."""


@dataclass(frozen=True)
class Stack:
    """A whole Airflow: API server, scheduler, DAG processor and triggerer."""

    home: Path
    process_group: int
    url: str

    @property
    def log(self) -> Path:
        """Where all of Airflow's output goes."""
        return self.home / "standalone.log"

    def is_alive(self) -> bool:
        """Whether any of its processes is there."""
        with suppress(ChildProcessError):
            os.waitpid(self.process_group, os.WNOHANG)  # a child of ours stays listed until then
        try:
            os.killpg(self.process_group, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return _is_airflow(self.process_group)

    def is_healthy(self) -> bool:
        """Whether every part says that it is well."""
        try:
            answer = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=5)
        except httpx.HTTPError:
            return False
        parts = answer.json().values() if answer.is_success else ()
        return bool(parts) and all(part.get("status") == "healthy" for part in parts)

    def stop(self) -> None:
        """Stop it as a person at the keyboard would, and make sure."""
        # To the leader alone, which then stops its parts; SIGTERM would leave them behind.
        with suppress(ProcessLookupError):
            os.kill(self.process_group, signal.SIGINT)
        if not _await(lambda: not self.is_alive(), _STOP_TIMEOUT_SECONDS):
            with suppress(ProcessLookupError):
                os.killpg(self.process_group, signal.SIGKILL)
            _await(lambda: not self.is_alive(), _STOP_TIMEOUT_SECONDS)
        (self.home / "stack.json").unlink(missing_ok=True)


def start_stack(settings: Settings, environment: Mapping[str, str] | None = None) -> Stack:
    """Start Airflow and wait until every part is healthy."""
    home = _airflow_home(settings)
    home.mkdir(parents=True, exist_ok=True)
    port = _find_free_port()
    url = f"http://127.0.0.1:{port}"
    with (home / "standalone.log").open("w") as log:
        process = subprocess.Popen(
            ["airflow", "standalone"],
            env=_environment(settings, home, port) | dict(environment or {}),
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    stack = Stack(home, process.pid, url)
    (home / "stack.json").write_text(json.dumps({"process_group": process.pid, "url": url}))

    def is_decided() -> bool:
        return process.poll() is not None or stack.is_healthy()

    is_up = _await(is_decided, _START_TIMEOUT_SECONDS) and process.poll() is None
    if not is_up:
        stack.stop()
        tail = "\n".join(stack.log.read_text(errors="replace").splitlines()[-15:])
        raise StackError(
            f"Airflow did not become healthy. Its last words are below, all of them are in "
            f"{stack.log}.\n{tail}"
        )
    return stack


def find_stack(settings: Settings) -> Stack | None:
    """Find an Airflow that was started before and still runs."""
    home = _airflow_home(settings)
    try:
        known = json.loads((home / "stack.json").read_text())
    except FileNotFoundError:
        return None
    stack = Stack(home, known["process_group"], known["url"])
    if stack.is_alive():
        return stack
    (home / "stack.json").unlink()
    return None


def _airflow_home(settings: Settings) -> Path:
    # One for each folder of specs, so that no Airflow shows the pipelines of another.
    own = "" if settings.pipelines == settings.home / "pipelines" else f"-{settings.pipelines.name}"
    return settings.home / "var" / f"airflow{own}"


def _environment(settings: Settings, home: Path, port: int) -> dict[str, str]:
    binaries = str(Path(sys.executable).parent)
    return (
        os.environ
        | settings.to_environment()
        | {
            # Airflow and spark-submit start their parts by name.
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(settings.home / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(settings.home / "plugins"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
            # Every request is an administrator's, so the server must be reached from here alone.
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
            "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
            "AIRFLOW__API_AUTH__JWT_SECRET": _read_secret(home / "jwt-secret"),
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "30",
            "AIRFLOW_CONN_SPARK_DEFAULT": os.environ.get(
                "AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[2]"}'
            ),
            "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1"),
        }
    )


def _is_airflow(pid: int) -> bool:
    # After a restart of the machine the number may be somebody else's.
    command = Path(f"/proc/{pid}/cmdline")
    return not Path("/proc/self").exists() or (
        command.exists() and b"airflow" in command.read_bytes()
    )


def _read_secret(file: Path) -> str:
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_hex(64))
    return file.read_text()


def _find_free_port() -> int:
    for port in _PORTS:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise StackError("No port for Airflow is free on 127.0.0.1. Stop what holds 8080.")


def _await(is_so: Callable[[], bool], timeout_seconds: float) -> bool:
    deadline = time.monotonic() + timeout_seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True
