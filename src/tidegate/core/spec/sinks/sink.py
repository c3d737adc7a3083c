"""All kinds of sinks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tidegate.core.spec.sinks.delta import DeltaSink
from tidegate.core.spec.sinks.files import FilesSink
from tidegate.core.spec.sinks.jdbc import JdbcSink
from tidegate.core.spec.sinks.kafka import KafkaSink
from tidegate.core.spec.sinks.python import PythonSink
from tidegate.core.spec.sinks.spark import SparkSink

Sink = Annotated[
    DeltaSink | KafkaSink | JdbcSink | FilesSink | PythonSink | SparkSink,
    Field(discriminator="type"),
]
