"""OpenLineage's listener in a driver's JVM, which tells of each job of Spark's."""

from __future__ import annotations

from tidegate.core.settings import Settings
from tidegate.core.submission import join_jars

_FOLDER = "lineage"
_LISTENER = "io.openlineage.spark.agent.OpenLineageSparkListener"

# Delta's reading of its own log and rows that are made once for several sinks are no lineage, and
# would be told as tables that are written to themselves.
_UNTOLD = (
    "org.apache.spark.sql.execution.LogicalRDD",
    "org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression",
)
_DEFAULTS = {
    "spark.openlineage.filter.rddEventsDisabled": "true",
    "spark.openlineage.filter.deniedSparkNodes": f"[{';'.join(_UNTOLD)}]",
    # The listener reads tables by a session of its own, where Delta would do so in 50 parts.
    "spark.databricks.delta.snapshotPartitions": "2",
}
# Else it warns of Java's modules at every job.
_JAVA_OPTIONS = "--add-opens=java.base/java.security=ALL-UNNAMED"


def has_listener(settings: Settings) -> bool:
    """Whether the listener's JAR is installed."""
    return bool(join_jars(settings.jars / _FOLDER))


def add_listener(conf: dict[str, str], settings: Settings) -> dict[str, str]:
    """Add the listener to Spark's configuration."""
    joined = {
        "spark.jars": (",", join_jars(settings.jars / _FOLDER)),
        "spark.extraListeners": (",", _LISTENER),
        "spark.driver.extraJavaOptions": (" ", _JAVA_OPTIONS),
    }
    added = {key: _append(conf.get(key), *value) for key, value in joined.items()}
    return _DEFAULTS | conf | added


def _append(given: str | None, separator: str, added: str) -> str:
    return f"{given}{separator}{added}" if given else added
