"""A clone of the project in a temporary folder, with the commands that make runs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from upath import UPath

from tidegate.core.deltatable import DeltaRows

ROOT = Path(__file__).resolve().parents[2]


class Home:
    """A project of its own, which finds nothing of this one but its code and its JARs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "var" / "data"
        for name in ("dags", "jobs", "pipelines", "plugins", "demo/kafka"):
            shutil.copytree(ROOT / name, folder / name)
        (folder / "jars").symlink_to(ROOT / "jars")
        inherited = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("AIRFLOW", "TIDEGATE"))
        }
        self.environment = inherited | {
            "TIDEGATE_HOME": str(folder),
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "160",
        }

    def run(self, module: str) -> str:
        """Run a command of the demo, and return what it printed."""
        result = subprocess.run(
            [sys.executable, "-m", module],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def read_table(self, table: str) -> list[dict]:
        """Read a table by delta-rs, which shares no code with Spark."""
        return read_table(self.data / table)


def read_table(table: Path) -> list[dict]:
    """Read a table by delta-rs, which shares no code with Spark."""
    rows = DeltaRows.open(UPath(table))
    assert rows is not None, f"there is no table {table}"
    return rows.select().to_pylist()
