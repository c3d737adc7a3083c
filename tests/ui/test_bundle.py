"""The page that is committed is the one that its sources give."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILT = Path("src/tidegate/airflow/plugin/static/main.js")


# It needs npm's registry, as setting up does; with the tests that need more than Python.
@pytest.mark.airflow
@pytest.mark.skipif(shutil.which("npm") is None, reason="Node is not installed; CI has it")
def test_building_it_again_gives_the_same_bytes(tmp_path):
    for name in ("scripts", "ui"):
        ignored = shutil.ignore_patterns("node_modules")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    built = subprocess.run([tmp_path / "scripts/ui"], capture_output=True, text=True, check=False)
    log = tmp_path / "var/log/install.log"
    assert built.returncode == 0, built.stderr + log.read_text()[-2000:]
    assert (tmp_path / BUILT).read_bytes() == (ROOT / BUILT).read_bytes(), "run `make ui`"
