"""A Python function as a sink."""

from __future__ import annotations

from typing import Literal

from tidegate.core.spec.base import FunctionReference
from tidegate.core.spec.sinks.base import SinkModel


class PythonSink(SinkModel):
    """A function `(df, batch)`, called at least once for each batch."""

    type: Literal["python"]
    function: FunctionReference
