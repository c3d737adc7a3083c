"""A real Spark cluster of one machine: a master, a worker, and executors of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

_PATIENCE_SECONDS = 120
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_READY = "Successfully registered with master"
_EXECUTOR = b"CoarseGrainedExecutorBackend"


class SparkCluster:
    """Starts Spark's own master and worker, and kills executors."""

    def __init__(self, folder: Path, cores: int = 2) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.master = self._start("master.Master", [], _MASTER)
        size = ["--cores", str(cores), "--memory", "2g", "--work-dir", str(folder / "work")]
        self._start("worker.Worker", [*size, self.master], re.compile(f"({_READY})"))

    def find_executors(self) -> list[int]:
        """Find the processes of executors."""
        worker = self._processes[-1].pid
        return [
            pid
            for pid in _list_descendants(worker)
            if _EXECUTOR in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]

    def kill_executor(self) -> int:
        """Kill one executor, once there is one."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while not (found := self.find_executors()):
            assert time.monotonic() < end, "no executor came up"
            time.sleep(0.05)
        os.kill(found[0], signal.SIGKILL)
        return found[0]

    def stop(self) -> None:
        """Stop the worker, which ends its executors, and the master."""
        for process in reversed(self._processes):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()

    def _start(self, name: str, arguments: list[str], awaited: re.Pattern[str]) -> str:
        log = self._folder / f"{name}.log"
        command = Path(sys.executable).with_name("spark-class")
        ports = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        with log.open("wb") as told:
            self._processes.append(
                subprocess.Popen(
                    [command, f"org.apache.spark.deploy.{name}", *ports, *arguments],
                    env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
                    stdout=told,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )
        end = time.monotonic() + _PATIENCE_SECONDS
        while not (found := awaited.search(log.read_text(errors="replace"))):
            assert time.monotonic() < end, log.read_text()
            assert self._processes[-1].poll() is None, log.read_text()
            time.sleep(0.05)
        return found[1]


def _list_descendants(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        # A JVM starts others from any of its threads.
        for thread in Path(f"/proc/{pid}/task").iterdir():
            children += (thread / "children").read_text().split()
    except FileNotFoundError:
        return []
    found = sorted(set(map(int, children)))
    return found + [below for child in found for below in _list_descendants(child)]
