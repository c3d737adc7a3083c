"""The sample input of the examples: a folder of files for each."""

from __future__ import annotations

import os
import time
from itertools import count
from pathlib import Path

from demo.data import publish

SAMPLES = Path(__file__).with_name("examples")


def list_examples() -> list[str]:
    """List the examples by name."""
    return sorted(folder.name for folder in SAMPLES.iterdir())


def list_files(name: str) -> list[Path]:
    """List the files of an example in the order in which they are to be read."""
    return sorted(file for file in (SAMPLES / name).rglob("*") if file.is_file())


def land_sample(name: str, data: Path) -> list[Path]:
    """Land the files of an example that are not there yet, and return them."""
    files = list_files(name)
    # Spark reads older files first, and of the same millisecond whichever it likes.
    ages = count(int(time.time()) - len(files))
    targets = [data / "landing" / file.relative_to(SAMPLES) for file in files]
    return [
        _land_file(file, target, age)
        for file, target, age in zip(files, targets, ages, strict=False)
        if not target.exists()
    ]


def _land_file(file: Path, target: Path, modified: int) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    publish(target, file.read_text())
    os.utime(target, times=(modified, modified))
    return target
