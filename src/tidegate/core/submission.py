"""What spark-submit is given for a run, whoever calls it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from tidegate.core.errors import SettingsError
from tidegate.core.lease import LeaseFolder
from tidegate.core.ledger import Attempt, Ledger, Outcome
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.sinks.kafka import KafkaSink

_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_SILENT = (
    "spark-submit failed and the driver said nothing: it was killed, or it never began. "
    "What it had committed is kept; the log of spark-submit tells more."
)
# Spark hides the values of such options wherever it shows or logs them.
_REDACTED = "(?i)secret|password|token|access[._]?key|connection[._]?string|jaas|keystore|ssl[.]key"
_TRIED_ONCE = {
    "spark.task.maxFailures": "1",
    "spark.stage.maxConsecutiveAttempts": "1",
    "spark.speculation": "false",
}
_QUIET = {"spark.log.level": "WARN", "spark.ui.showConsoleProgress": "false"}


@dataclass(frozen=True)
class Submission:
    """One call of spark-submit."""

    application: str
    arguments: tuple[str, ...]
    conf: dict[str, str]
    environment: dict[str, str]


def prepare_submission(
    pipeline: Pipeline, settings: Settings, run_id: str, try_number: str | None = None
) -> Submission:
    """Put together what spark-submit needs to run one pipeline."""
    tried = ("--try", try_number) if try_number else ()
    submission = _prepare(settings, ("--run-id", run_id, *tried, pipeline.name))
    return replace(submission, conf=submission.conf | pipeline.spark | _guard_tasks(pipeline))


def prepare_replay(pipeline: Pipeline, settings: Settings, replay_id: str) -> Submission:
    """Put together what spark-submit needs to take up again what was put aside."""
    submission = prepare_submission(pipeline, settings, replay_id)
    return replace(submission, arguments=("--replay", replay_id, pipeline.name))


def prepare_backfill(
    pipeline: Pipeline, settings: Settings, backfill_id: str, slices: Sequence[int] = ()
) -> Submission:
    """Put together what spark-submit needs to read a range once more, or just some slices of it."""
    submission = prepare_submission(pipeline, settings, backfill_id)
    some = [part for number in slices for part in ("--slice", str(number))]
    return replace(submission, arguments=("--backfill", backfill_id, *some, pipeline.name))


def prepare_check(names: Sequence[str], settings: Settings, result: Path) -> Submission:
    """Put together what spark-submit needs to hold specs against their checkpoints."""
    return _prepare(settings, ("--check", str(result), *names))


def _prepare(settings: Settings, arguments: tuple[str, ...]) -> Submission:
    return Submission(
        application=str(settings.home / "jobs" / "run_pipelines.py"),
        arguments=arguments,
        conf=_DELTA
        | _QUIET
        | {"spark.redaction.regex": _REDACTED}
        | {"spark.jars": join_jars(settings.jars)},
        environment=settings.to_environment() | {"PYSPARK_PYTHON": _find_python()},
    )


def _find_python() -> str:
    # Spark takes whatever python3 is on the PATH, which may lack what the executors need.
    return os.environ.get("PYSPARK_PYTHON") or sys.executable


def _guard_tasks(pipeline: Pipeline) -> dict[str, str]:
    # A task that is tried again would send again what it had sent: let the batch fail instead, which
    # then sends only what the topic lacks.
    sends = any(isinstance(sink, KafkaSink) for sink in pipeline.sinks)
    return _TRIED_ONCE if sends else {}


def join_jars(folder: Path) -> str:
    """List a folder's JARs as Spark takes them."""
    # The JARs are resolved once, by `make jars`; `--packages` would do so at every submit.
    return ",".join(sorted(str(jar) for jar in folder.glob("*.jar")))


def name_attempt(run_id: str, try_number: str | None) -> str:
    """Name an attempt at a run, as the lease on its checkpoint does."""
    return f"run {run_id}" + (f", try {try_number}" if try_number else "")


def record_silent_end(
    settings: Settings, pipeline: str, run_id: str, try_number: str | None = None
) -> None:
    """Record the failure of a driver that could not do so itself."""
    held = LeaseFolder.beside(settings.checkpoint_of(pipeline)).find_held()
    if held and held.holder.what != name_attempt(run_id, try_number):
        return  # this driver was refused, and the one at work speaks for itself
    ledger = Ledger.beside(settings.state_of(pipeline))
    attempt = ledger.read_attempt(run_id)
    if attempt is None or attempt.outcome is Outcome.RUNNING:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        ledger.record_attempt(run_id, Attempt(Outcome.FAILED, now, now, _SILENT))


def require_jars(settings: Settings) -> None:
    """Refuse to start a JVM that could not write Delta."""
    if not any(settings.jars.glob("delta-spark_*.jar")):
        raise SettingsError(
            f"There is no Delta JAR in {settings.jars}.",
            remedy="Run 'make jars', or set TIDEGATE_JARS to the folder that holds them.",
        )
