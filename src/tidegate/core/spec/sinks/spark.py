"""Any format that Spark can write as a sink."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tidegate.core.spec.base import Options
from tidegate.core.spec.sinks.base import SinkModel


class SparkSink(SinkModel):
    """Rows appended by a format of Spark's, at least once each."""

    type: Literal["spark"]
    format: Annotated[str, StringConstraints(pattern=r"^[A-Za-z][\w.-]*$")]
    connection: str | None = Field(
        default=None, min_length=1, description="A connection whose options are added, unseen."
    )
    options: Options = Field(default_factory=dict, description="Options of the format.")
