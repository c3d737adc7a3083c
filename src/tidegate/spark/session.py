"""The Spark session of one pipeline, sized to the machines it runs on."""

from __future__ import annotations

from contextlib import suppress

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tidegate.core.spec.pipeline import Pipeline

# Out of the box a bounded batch pays for a 200-way shuffle and Delta's 50-way snapshot.
_SIZED_TO_CORES = ("spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions")

_FOR_STATE = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Snapshots and clean-up wait for it, and a run may be over before the default minute has passed.
    "spark.sql.streaming.stateStore.maintenanceInterval": "2s",
    "spark.sql.streaming.minBatchesToRetain": "100",
}


def open_session(pipeline: Pipeline) -> SparkSession:
    """Open a session of its own for a pipeline, in the driver's one Spark application."""
    session = SparkSession.builder.appName("tidegate").getOrCreate().newSession()
    cores = str(session.sparkContext.defaultParallelism)
    for key in _SIZED_TO_CORES:
        session.conf.set(key, cores)
    session.conf.set("spark.sql.session.timeZone", "UTC")
    for key, value in pipeline.spark.items():
        # What is for the whole application was set when it began; asked, Spark does not know Delta's.
        with suppress(AnalysisException):
            session.conf.set(key, value)
    return session


def name_sources(session: SparkSession) -> None:
    """Let the checkpoint know sources by their names, where there are several."""
    session.conf.set("spark.sql.streaming.queryEvolution.enableSourceEvolution", "true")
    session.conf.set("spark.sql.streaming.offsetLog.formatVersion", "2")


def tune_for_state(session: SparkSession, pipeline: Pipeline) -> None:
    """Set what a query that remembers needs; a checkpoint that exists keeps what it began with."""
    for key, value in _FOR_STATE.items():
        if key not in pipeline.spark:
            session.conf.set(key, value)
