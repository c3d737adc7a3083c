"""The `tidegate` command: what it can do, and how it says that something is wrong."""

from __future__ import annotations

import sys

import typer

from tidegate import __version__
from tidegate.cli import (
    alerts,
    backfill,
    check,
    checkpoint,
    explain,
    lag,
    maintain,
    quarantine,
    run,
    status,
    validate,
)
from tidegate.core.errors import NotACheckpointError, TidegateError

app = typer.Typer(
    name="tidegate",
    help="Incremental ETL on Spark Structured Streaming, gated on what was really committed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("validate")(validate.validate)
app.command("check")(check.check)
app.command("schema")(validate.schema)
app.command("run")(run.run)
app.command("backfill")(backfill.backfill)
app.command("maintain")(maintain.maintain)
app.command("status")(status.status)
app.command("lag")(lag.lag)
app.command("alerts")(alerts.alerts)
app.command("explain")(explain.explain)
app.add_typer(checkpoint.app, name="checkpoint")
app.add_typer(quarantine.app, name="quarantine")


@app.command("version")
def version() -> None:
    """Print the version."""
    print(__version__)


def main() -> None:
    """Run the command; an error of ours is one message and an exit code, not a traceback."""
    try:
        app()
    except NotACheckpointError as error:
        print(f"tidegate: {error}", file=sys.stderr)
        sys.exit(2)
    except TidegateError as error:
        print(f"tidegate: {error}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        print(f"tidegate: A file cannot be used: {error}. Check the path.", file=sys.stderr)
        sys.exit(1)
