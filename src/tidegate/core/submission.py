"""What spark-submit is given for a run, whoever calls it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tidegate.core.errors import SettingsError
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline

_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_QUIET = {"spark.log.level": "WARN", "spark.ui.showConsoleProgress": "false"}


@dataclass(frozen=True)
class Submission:
    """One call of spark-submit."""

    application: str
    arguments: tuple[str, ...]
    conf: dict[str, str]
    environment: dict[str, str]


def prepare_submission(pipeline: Pipeline, settings: Settings, run_id: str) -> Submission:
    """Put together what spark-submit needs to run one pipeline."""
    return Submission(
        application=str(settings.home / "jobs" / "run_pipelines.py"),
        arguments=("--run-id", run_id, pipeline.name),
        conf=_DELTA | _QUIET | {"spark.jars": _join_jars(settings.jars)} | pipeline.spark,
        environment=settings.to_environment(),
    )


def _join_jars(folder: Path) -> str:
    # The JARs are resolved once, by `make jars`; `--packages` would do so at every submit.
    return ",".join(sorted(str(jar) for jar in folder.glob("*.jar")))


def require_jars(settings: Settings) -> None:
    """Refuse to start a JVM that could not write Delta."""
    if not any(settings.jars.glob("delta-spark_*.jar")):
        raise SettingsError(
            f"There is no Delta JAR in {settings.jars}.",
            remedy="Run 'make jars', or set TIDEGATE_JARS to the folder that holds them.",
        )
