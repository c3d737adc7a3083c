"""`make example NAME=…`: one example on its sample input, with its tables at the end."""

from __future__ import annotations

import sys
from pathlib import Path

import psycopg
from rich.console import Console

from demo.result import find_database, read_results
from demo.sample import land_sample, list_examples
from tidegate.cli.app import app
from tidegate.core.errors import ConnectionSpecError, TidegateError
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import load_pipeline
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.sinks.jdbc import JdbcSink


class ExampleError(Exception):
    """An example cannot be run as it was asked for."""


def main(arguments: list[str]) -> int:
    """Land the sample of an example, run it, and print what it wrote."""
    console = Console()
    try:
        run_example(_choose(arguments), Settings.from_environment(), console)
    except (ExampleError, TidegateError, psycopg.Error) as error:
        console.print(str(error), style="red", markup=False, highlight=False)
        return 1
    return 0


def run_example(name: str, settings: Settings, console: Console) -> None:
    """Run an example as a person would by `tidegate run`."""
    pipeline = load_pipeline(settings.pipelines, name).require()
    _require_databases(pipeline)
    files = land_sample(name, Path(settings.data))
    console.print(f"landed {len(files) or 'no more'} files in {settings.data}/landing/{name}")
    app(["run", name], standalone_mode=False)
    for result in read_results(pipeline, settings):
        console.print(f"{result.place}:", result.render(), sep="\n", highlight=False)


def _choose(arguments: list[str]) -> str:
    names = list_examples()
    wanted = " ".join(arguments)
    if wanted in names:
        return wanted
    fact = f"There is no example {wanted!r}." if wanted else "Which example?"
    raise ExampleError(f"{fact} Say make example NAME=… with one of {', '.join(names)}.")


def _require_databases(pipeline: Pipeline) -> None:
    # Otherwise it would be told by the driver, half a minute and a JVM later.
    for sink in pipeline.sinks:
        if isinstance(sink, JdbcSink):
            try:
                find_database(sink)
            except ConnectionSpecError as error:
                raise ExampleError(
                    f"{pipeline.name} writes to PostgreSQL. {error} See type: jdbc in docs/specs.md."
                ) from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
