"""The Spark session of one pipeline, sized to the machines it runs on."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tidegate.core.spec.pipeline import Pipeline

# Out of the box a bounded batch pays for a 200-way shuffle and Delta's 50-way snapshot.
_SIZED_TO_CORES = ("spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions")


def open_session(pipeline: Pipeline) -> SparkSession:
    """Open a session of its own for a pipeline, in the driver's one Spark application."""
    session = SparkSession.builder.appName("tidegate").getOrCreate().newSession()
    cores = str(session.sparkContext.defaultParallelism)
    for key in _SIZED_TO_CORES:
        session.conf.set(key, cores)
    session.conf.set("spark.sql.session.timeZone", "UTC")
    for key, value in pipeline.spark.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session
