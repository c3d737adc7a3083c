"""Who holds a lease: a process, told apart from all others."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_STARTED_FIELD = 19  # of /proc/<pid>/stat, counted from after the process's name


@dataclass(frozen=True)
class Holder:
    """A process, and what it holds the lease for."""

    what: str
    """Such as `run scheduled__2026-01-01, try 2`."""
    host: str
    pid: int
    machine: str | None = None
    """The boot and the process namespace that the id counts in; None where it cannot be told."""
    started: str | None = None
    """When the process began, in that machine's ticks: ids are given again."""

    @classmethod
    def here(cls, what: str) -> Holder:
        """Describe this process."""
        pid = os.getpid()
        return cls(what, socket.gethostname(), pid, _name_machine(), _find_start(pid))

    def is_known_dead(self) -> bool:
        """Whether the process is certainly over; of one on another machine nobody here can say."""
        if self.machine is None or self.started is None or self.machine != _name_machine():
            return False
        return _find_start(self.pid) != self.started

    def __str__(self) -> str:
        return f"{self.what} (process {self.pid} on {self.host})"


def _name_machine() -> str | None:
    # Containers may share a host's name, and then count their processes apart.
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return None


def _find_start(pid: int) -> str | None:
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    # One that has ended and is not yet waited for is over all the same.
    return None if fields[0] in "ZX" else fields[_STARTED_FIELD]
