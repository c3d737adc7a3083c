"""The Spark session of one pipeline, sized to the machines it runs on."""

from __future__ import annotations

from contextlib import suppress

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from upath import UPath

from tidegate.core.checkpoint.state import count_state_partitions
from tidegate.core.spec.pipeline import Pipeline

# Out of the box a bounded batch pays for a 200-way shuffle and Delta's 50-way snapshot.
_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_SIZED_TO_CORES = (_SHUFFLE_PARTITIONS, "spark.databricks.delta.snapshotPartitions")

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


def name_sources(session: SparkSession, checkpoint: UPath) -> None:
    """Let the checkpoint know sources by their names, where there are several."""
    session.conf.set("spark.sql.streaming.queryEvolution.enableSourceEvolution", "true")
    session.conf.set("spark.sql.streaming.offsetLog.formatVersion", "2")
    # Spark 4.2 leaves the number of the state's partitions out of such a log. A pending batch would be
    # refused for it, and a machine with more cores would look for rows where they are not.
    session.conf.set("spark.sql.streaming.checkUnfinishedRepartitionOnRestart", "false")
    partitions = count_state_partitions(checkpoint)
    if partitions:
        session.conf.set(_SHUFFLE_PARTITIONS, str(partitions))


def tune_for_state(session: SparkSession, pipeline: Pipeline) -> None:
    """Set what a query that remembers needs; a checkpoint that exists keeps what it began with."""
    for key, value in _FOR_STATE.items():
        if key not in pipeline.spark:
            session.conf.set(key, value)
