"""Every part of the runbook names a test that goes through it, and commands that are there."""

import ast
import re
from pathlib import Path

import pytest
from typer.main import get_command

from tidegate.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()
PARTS = {part.partition("\n")[0]: part for part in RUNBOOK.split("\n## ")[1:]}
TROUBLES = (
    *("driver crashed", "broker", "expired", "broken", "changed", "watermark", "Two drivers"),
    *("executor was lost", "store is slow", "pending batch"),
)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_every_trouble_has_a_part(trouble):
    assert any(trouble in title for title in PARTS)


@pytest.mark.parametrize("title", PARTS)
def test_every_part_is_gone_through_by_a_test(title):
    named = re.findall(r"<!-- test: (\S+) -->", PARTS[title])
    assert named
    for node in named:
        file, *path = node.split("::")
        names = {
            found.name
            for found in ast.walk(ast.parse((ROOT / file).read_text()))
            if isinstance(found, ast.FunctionDef | ast.ClassDef)
        }
        assert set(path) <= names, node


@pytest.mark.parametrize("document", sorted((ROOT / "docs").glob("*.md")), ids=lambda f: f.name)
def test_every_command_is_there(document):
    text = document.read_text()
    for words in re.findall(r"(?:^|`)tidegate ((?:[a-z]+ ?)+)", text, re.MULTILINE):
        command = get_command(app)
        for word in words.split():
            if not hasattr(command, "commands"):
                break
            assert word in command.commands, f"{document.name}: tidegate {words}"
            command = command.commands[word]
