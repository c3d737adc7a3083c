"""`tidegate backfill`: a range of a source once more, by hand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Annotated

import typer

from tidegate.cli.run import submit
from tidegate.core.backfill.book import Backfill, Backfills
from tidegate.core.backfill.proposal import propose
from tidegate.core.backfill.report import render
from tidegate.core.backfill.request import Mode
from tidegate.core.backfill.verification import verify
from tidegate.core.errors import BackfillError, SubmitError
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import choose_pipelines
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.submission import prepare_backfill, require_jars


def backfill(
    name: Annotated[str, typer.Argument(help="The pipeline.")],
    mode: Annotated[
        Mode | None,
        typer.Option(
            help="replace swaps the range as a whole; merge brings rows in by their keys; append adds "
            "them, where the table has none of the range."
        ),
    ] = None,
    offsets: Annotated[
        str | None,
        typer.Option(
            help="""Kafka: from and up to, not including: '{"orders": {"0": [5, 90]}}'."""
        ),
    ] = None,
    since: Annotated[str | None, typer.Option(help="From this time on.")] = None,
    until: Annotated[str | None, typer.Option(help="Up to, not including, this time.")] = None,
    first_version: Annotated[int | None, typer.Option(help="Delta: the first version.")] = None,
    last_version: Annotated[int | None, typer.Option(help="Delta: the last version.")] = None,
    glob: Annotated[str | None, typer.Option(help="Files: names, as a pattern.")] = None,
    path: Annotated[list[str] | None, typer.Option(help="Files: just this one; repeat it.")] = None,
    slices: Annotated[int, typer.Option(help="Cut the range into so many parts.")] = 1,
    parallelism: Annotated[
        int, typer.Option(help="Run so many slices at once, by a driver each.")
    ] = 1,
    resume: Annotated[
        str | None, typer.Option(metavar="ID", help="Go on with a backfill that was not finished.")
    ] = None,
    master: Annotated[
        str, typer.Option(envvar="TIDEGATE_MASTER", help="Spark's master.")
    ] = "local[*]",
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")
    ] = False,
) -> None:
    """Read a range of a pipeline's source once more; live runs go on meanwhile."""
    settings = Settings.from_environment()
    if resume:
        if dry_run or any((mode, offsets, since, until, glob, path, first_version, last_version)):
            raise BackfillError("takes --resume, or what is to be done; not both")
        (pipeline,) = choose_pipelines(settings.pipelines, name)
        begun = Backfills(pipeline, settings).read(resume)
        require_jars(settings)
    else:
        asked = {
            "pipeline": name,
            "mode": mode,
            "offsets": offsets,
            "since": since,
            "until": until,
            "first_version": first_version,
            "last_version": last_version,
            "glob": glob,
            "paths": path or None,
            "slices": slices,
            "parallelism": parallelism,
        }
        proposal = propose(asked, settings)
        pipeline = proposal.pipeline
        for line in proposal.describe():
            print(line, flush=True)
        if dry_run:
            print("Nothing was done.")
            return
        require_jars(settings)
        begun = proposal.begin()
    print(f"{name}: {begun.id}; go on with it by --resume, should it be cut off", flush=True)
    book = Backfills(pipeline, settings)
    _run_lanes(pipeline, settings, begun, master)
    if not book.is_finished(begun):
        submit(prepare_backfill(pipeline, settings, begun.id), master)
    verification = verify(book, begun)
    print(render(verification), end="")
    if verification.problems:
        raise BackfillError(*verification.problems)


def _run_lanes(pipeline: Pipeline, settings: Settings, begun: Backfill, master: str) -> None:
    """Run slices by several drivers at once; what they leave is told by the one that follows."""
    done = Backfills(pipeline, settings).read_done(begun.id)
    left = [number for number in range(len(begun.slices)) if number not in done]
    lanes = [left[first :: begun.parallelism] for first in range(begun.parallelism)]
    if begun.parallelism == 1 or len(left) <= 1:
        return

    def run(lane: list[int]) -> None:
        with suppress(SubmitError):
            submit(prepare_backfill(pipeline, settings, begun.id, lane), master)

    with ThreadPoolExecutor(begun.parallelism) as pool:
        list(pool.map(run, filter(None, lanes)))
