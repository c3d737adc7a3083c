"""Delta tables as sinks: one module for each way a batch goes into one."""

from tidegate.spark.sinks.delta.append import DeltaAppend
from tidegate.spark.sinks.delta.history import DeltaHistory
from tidegate.spark.sinks.delta.overwrite import DeltaOverwrite
from tidegate.spark.sinks.delta.routes import DeltaRoutes
from tidegate.spark.sinks.delta.upsert import DeltaUpsert

__all__ = ["DeltaAppend", "DeltaHistory", "DeltaOverwrite", "DeltaRoutes", "DeltaUpsert"]
