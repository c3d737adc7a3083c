"""What a pipeline is: the model, its YAML form and its JSON Schema."""

from tidegate.core.spec.files import FilesSource
from tidegate.core.spec.kafka import Decoding, KafkaSource
from tidegate.core.spec.loader import LoadedSpec, load_pipeline, load_specs
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.spec.sinks.delta import DeltaSink
from tidegate.core.spec.sinks.kafka import KafkaSink
from tidegate.core.spec.source import DeltaSource, RateSource
from tidegate.core.spec.transform import PythonStep, SqlStep

__all__ = [
    "Decoding",
    "DeltaSink",
    "DeltaSource",
    "FilesSource",
    "KafkaSink",
    "KafkaSource",
    "LoadedSpec",
    "Pipeline",
    "PythonStep",
    "RateSource",
    "SqlStep",
    "load_pipeline",
    "load_specs",
]
