"""Set-up on a machine that lacks something: one line that says what, and the remedy."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = (
    "bash",
    "env",
    "dirname",
    "df",
    "awk",
    "sed",
    "head",
    "mkdir",
    "grep",
    "tail",
    "cut",
    "cat",
)


@pytest.fixture
def clone(tmp_path) -> Path:
    """What a clone has before anything is installed."""
    for name in ("scripts", "jobs", "src"):
        shutil.copytree(ROOT / name, tmp_path / "clone" / name)
    for name in (".uv-version", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path / "clone" / name)
    (tmp_path / "clone" / "requirements.txt").write_text("")
    return tmp_path / "clone"


@pytest.fixture
def machine(tmp_path) -> Path:
    """A PATH with the plainest tools, Python, and a Java that says it is 17."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in (*TOOLS, "ls", "rm", "sha256sum"):
        (folder / name).symlink_to(shutil.which(name))
    (folder / "python3.11").symlink_to(shutil.which("python3"))
    put(folder, "java", """echo 'openjdk version "17.0.15" 2025-04-15' >&2""")
    return folder


def put(folder: Path, name: str, body: str) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).write_text(f"#!/usr/bin/env bash\n{body}\n")
    (folder / name).chmod(0o755)


def run(clone: Path, machine: Path, *command: str, **variables: str) -> tuple[int, list[str]]:
    environment = {"PATH": str(machine), "HOME": str(clone), **variables}
    result = subprocess.run(
        [str(clone / "scripts" / command[0]), *command[1:]],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return result.returncode, result.stderr.splitlines()


def refuse(clone: Path, machine: Path, *command: str, **variables: str) -> str:
    """Run a script that must fail with exactly one line, and return the line."""
    code, lines = run(clone, machine, *command, **variables)
    assert code == 1
    assert len(lines) == 1, lines
    return lines[0]


def test_no_java_is_told(clone, machine):
    (machine / "java").unlink()
    line = refuse(clone, machine, "install", "requirements.txt")
    assert "Java was not found. Install Java 17" in line


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_292"])
def test_an_old_java_is_told_by_its_version(clone, machine, version):
    put(machine, "java", f"echo 'openjdk version \"{version}\"' >&2")
    line = refuse(clone, machine, "install", "requirements.txt")
    number = "8" if version.startswith("1.8") else "11"
    assert f"Java {number} is too old for Spark 4.2. Install Java 17" in line


def test_java_home_is_heard(clone, machine, tmp_path):
    line = refuse(clone, machine, "install", "requirements.txt", JAVA_HOME=str(tmp_path / "no"))
    assert "set JAVA_HOME" in line


def test_a_full_disk_is_told(clone, machine):
    put(machine, "df", "echo Filesystem; echo '/dev/x 9 9 1048576 99% /'")
    line = refuse(clone, machine, "install", "requirements.txt")
    assert "Only 1 GiB are free on this disk, and 3 GiB are needed. Free some" in line


def test_no_python_is_told(clone, machine):
    (machine / "python3.11").unlink()
    line = refuse(clone, machine, "install", "requirements.txt")
    assert "Python 3.11 or 3.12 was not found" in line


def test_no_package_index_is_told(clone, machine):
    nowhere = {
        "PIP_INDEX_URL": "http://127.0.0.1:9/",
        "PIP_RETRIES": "0",
        "PIP_CONFIG_FILE": os.devnull,
    }
    line = refuse(clone, machine, "install", "requirements.txt", **nowhere)
    assert "The Python package index cannot be reached" in line
    assert "then run make again" in line


def test_jars_without_pyspark_are_told(clone, machine):
    assert "pyspark is not installed" in refuse(clone, machine, "jars", "default")


def test_jars_that_do_not_resolve_are_told(clone, machine):
    jars = clone / ".venv/lib/python3.11/site-packages/pyspark/jars"
    jars.mkdir(parents=True)
    (jars / "ivy-2.5.3.jar").touch()
    put(machine, "java", """case "$1" in -jar) exit 1;; esac; echo 'version "17.0.1"' >&2""")
    line = refuse(clone, machine, "jars", "default")
    assert "Check that Maven Central can be reached" in line
    assert "IVY_SETTINGS" in line


def test_without_node_the_page_cannot_be_built(clone, machine):
    assert "Node was not found. Install Node" in refuse(clone, machine, "ui")


def test_without_a_browser_it_says_which_to_install(clone, machine):
    (machine / "id").symlink_to(shutil.which("id"))
    line = refuse(clone, machine, "browser")
    assert "Install Chromium (Debian: apt-get install chromium)" in line
