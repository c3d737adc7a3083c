"""The driver's entry point: one or several pipelines in one Spark application."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tidegate.core.errors import TidegateError
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import load_pipeline
from tidegate.spark.backfill import run_backfill
from tidegate.spark.compatibility import check_states
from tidegate.spark.failure import describe_failure
from tidegate.spark.maintenance import maintain_tables
from tidegate.spark.replay import replay_quarantine
from tidegate.spark.runner import run_pipeline


def main(arguments: list[str] | None = None) -> int:
    """Run planned pipelines; the last line says what happened, for whoever reads only that."""
    parser = argparse.ArgumentParser(prog="run_pipelines.py", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--run-id", help="the run, as it was planned")
    what.add_argument("--replay", help="the replay of what was put aside, as it was begun")
    what.add_argument("--backfill", help="the backfill, as it was begun")
    what.add_argument("--maintain", action="store_true", help="tidy up the pipelines' tables")
    what.add_argument("--check", help="hold the specs against their checkpoints; the result's file")
    parser.add_argument(
        "--slice",
        dest="slices",
        metavar="N",
        type=int,
        action="append",
        default=[],
        help="just this slice of the backfill; repeat it",
    )
    parser.add_argument("--try", dest="try_number", help="which try of a task it is")
    parser.add_argument("pipelines", nargs="+", metavar="PIPELINE")
    options = parser.parse_args(arguments)
    settings = Settings.from_environment()
    if options.check:
        check_states(options.pipelines, settings, Path(options.check))
        return 0
    failures = []
    for name in options.pipelines:
        try:
            pipeline = load_pipeline(settings.pipelines, name).require()
            if options.replay:
                replay_quarantine(pipeline, settings, options.replay)
            elif options.backfill:
                run_backfill(pipeline, settings, options.backfill, options.slices)
            elif options.maintain:
                maintain_tables(pipeline, settings)
            else:
                run_pipeline(pipeline, settings, options.run_id, options.try_number)
        except Exception as error:
            if not isinstance(error, TidegateError):
                sys.excepthook(type(error), error, error.__traceback__)
            failures.append(f"tidegate: {name} failed. {describe_failure(error)}")
    for failure in failures:
        print(failure, file=sys.stderr, flush=True)
    return 1 if failures else 0
