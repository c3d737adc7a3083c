"""Incremental ETL on Spark Structured Streaming, gated on what was really committed."""

__version__ = "0.1.0"
