"""Where a pipeline reads from. Every source is bounded per batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from tidegate.core.spec.base import (
    Count,
    Location,
    Moment,
    Options,
    is_true,
    refuse_truth,
)
from tidegate.core.spec.files import FilesSource
from tidegate.core.spec.kafka import KafkaSource
from tidegate.core.spec.schema import Schema
from tidegate.core.spec.watermark import TimedSource


class DeltaSource(TimedSource):
    """The rows that are added to a Delta table, as a stream."""

    type: Literal["delta"]
    table: Location
    starting_version: Annotated[int, Field(ge=0), BeforeValidator(refuse_truth)] | None = Field(
        default=None, description="First run only; afterwards the checkpoint decides."
    )
    starting_timestamp: Moment | None = Field(
        default=None, description="First run only; afterwards the checkpoint decides."
    )
    max_files_per_trigger: Count | None = None
    max_bytes_per_trigger: Count | None = None
    change_data_feed: bool = Field(
        default=False, description="Read changes, with _change_type and _commit_version."
    )
    schema_tracking: bool = Field(
        default=False,
        description="Keep a log of the table's schema, so that reading outlives columns that are "
        "renamed or dropped.",
    )
    skip_change_commits: bool = Field(
        default=False,
        description="Pass over commits that change or delete rows, their inserts included.",
    )

    provenance: bool = Field(
        default=False,
        description="Add _file, the file of the table that a row was read from, so that a range of "
        "versions can be replaced.",
    )

    @property
    def takes_changes(self) -> bool:
        """Whether it goes on past a commit that changes or deletes rows."""
        return self.change_data_feed or self.skip_change_commits

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        said = {key for key, value in given.items() if value is not None}
        if not {"max_files_per_trigger", "max_bytes_per_trigger"} & said:
            yield "needs max_files_per_trigger or max_bytes_per_trigger"
        if {"starting_version", "starting_timestamp"} <= said:
            yield "takes starting_version or starting_timestamp, not both"
        if is_true(given.get("change_data_feed")):
            if is_true(given.get("skip_change_commits")):
                yield "change_data_feed reads changes, so skip_change_commits must go"
            if is_true(given.get("provenance")):
                yield "change_data_feed adds _commit_version, so provenance must go"


class RateSource(TimedSource):
    """Made-up rows (timestamp, value), the same number each run; for trying things out."""

    type: Literal["rate"]
    rows_per_batch: Count


class SparkSource(TimedSource):
    """Any format that Spark can stream, whose end is known to the job alone."""

    type: Literal["spark"]
    format: Annotated[str, StringConstraints(pattern=r"^[A-Za-z][\w.-]*$")]
    file_schema: Schema | None = Field(
        default=None,
        alias="schema",
        description="Columns as Spark's DDL, where the format has none of its own.",
    )
    connection: str | None = Field(
        default=None, min_length=1, description="A connection whose options are added, unseen."
    )
    options: Options = Field(
        default_factory=dict, description="Options of the format, its bound per batch among them."
    )

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        if given.get("format") in _KNOWN_BETTER:
            name = given["format"]
            yield f"format {name} has a type of its own, {name}, which also knows where it ends"


_KNOWN_BETTER = ("delta", "kafka")

Source = Annotated[
    FilesSource | DeltaSource | KafkaSource | RateSource | SparkSource,
    Field(discriminator="type"),
]
