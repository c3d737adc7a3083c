"""docs/examples.md taken apart: what it shows of specs, input and output."""

import re
from pathlib import Path

from demo.result import Result
from demo.sample import SAMPLES, list_files
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.sinks.files import FilesSink
from tidegate.core.spec.sinks.sink import Sink

ROOT = Path(__file__).resolve().parents[1]
_NAME = r"`([^`\n]+)`[^`\n]*:\n\n"


def read_text() -> str:
    return (ROOT / "docs" / "examples.md").read_text()


def read_blocks() -> dict[str, str]:
    """Read the blocks of text, by the file or folder that is named before each."""
    return dict(re.findall(rf"{_NAME}```\w+\n(.*?)^```$", read_text(), re.MULTILINE | re.DOTALL))


def read_results() -> dict[str, Result]:
    """Read the tables, by the place that is named before each."""
    found = re.findall(rf"{_NAME}((?:\|.*\n)+)", read_text())
    return {place: _parse_table(place, text.splitlines()) for place, text in found}


def read_results_of(pipeline: Pipeline) -> list[Result]:
    """Read the tables of one pipeline: of its sinks, then of what it puts aside."""
    places = [*map(name_place, pipeline.sinks), pipeline.quarantine_sink.table]
    results = read_results().values()
    return [
        result
        for place in places
        for result in results
        if f"{result.place}/".startswith(f"{place}/")
    ]


def name_place(sink: Sink) -> str:
    """Name where a sink writes to, as its spec does."""
    return sink.path if isinstance(sink, FilesSink) else sink.table


def show_files(name: str) -> str:
    """Show the files of a sample as `tail -n +1 *` does."""
    folder = SAMPLES / name
    parts = (f"==> {file.relative_to(folder)} <==\n{file.read_text()}" for file in list_files(name))
    return "\n".join(parts)


def _parse_table(place: str, lines: list[str]) -> Result:
    heading, _, *rows = (_split(line) for line in lines)
    return Result(place, heading, tuple(rows))


def _split(line: str) -> tuple[str, ...]:
    return tuple(cell.strip().strip("`") for cell in line.strip("|").split("|"))
