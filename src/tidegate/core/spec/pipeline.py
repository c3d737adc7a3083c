"""A pipeline, declared once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any

from croniter import croniter
from pydantic import AfterValidator, BeforeValidator, Field, NonNegativeInt, StringConstraints

from tidegate.core.spec.base import (
    Duration,
    Location,
    Moment,
    Name,
    Options,
    SpecModel,
    normalise_location,
    refuse_truth,
)
from tidegate.core.spec.kafka import STRUCTURED, KafkaSource, OnMalformed
from tidegate.core.spec.sink import QUARANTINE, DeltaSink, KafkaSink, Sink
from tidegate.core.spec.source import Source
from tidegate.core.spec.transform import StaticTable, Steps

_PRESETS = ("@once", "@continuous", "@hourly", "@daily", "@weekly", "@monthly", "@yearly")
_CRON_FIELDS = ("minute", "hour", "day", "month", "weekday")
_RESERVED_VIEW = "input"
_OWN_CONF = frozenset(
    {
        "spark.jars",
        "spark.master",
        "spark.sql.catalog.spark_catalog",
        "spark.sql.extensions",
        "spark.submit.deployMode",
    }
)


def _check_schedule(schedule: str) -> str:
    if schedule in _PRESETS:
        return schedule
    try:
        # Asking for the next time finds expressions that parse and never come, such as 31 February.
        has_five_fields = len(schedule.split()) == len(_CRON_FIELDS)
        is_known = has_five_fields and bool(croniter(schedule).get_next())
    except (ValueError, KeyError):
        is_known = False
    if not is_known:
        raise ValueError(
            f"is not a cron expression that comes true; write five fields, {', '.join(_CRON_FIELDS)}, "
            f"such as '*/15 * * * *', or one of {', '.join(_PRESETS)}"
        )
    return schedule


class Pipeline(SpecModel):
    """One source, some steps and where the rows go, run as one bounded query at a time."""

    name: Name
    description: str = ""
    owner: str = "airflow"
    tags: tuple[Annotated[str, StringConstraints(min_length=1, max_length=100)], ...] = ()
    schedule: Annotated[str, AfterValidator(_check_schedule)] | None = Field(
        default=None, description="A cron expression or a preset; none means by hand."
    )
    after: tuple[Name, ...] = Field(
        default=(), description="Run whenever one of these pipelines has committed something."
    )
    start_date: Moment | None = Field(
        default=None, description="Before this, the schedule starts no run."
    )
    retries: Annotated[NonNegativeInt, BeforeValidator(refuse_truth)] = 2
    retry_delay: Duration = Field(
        default=timedelta(seconds=30), json_schema_extra={"default": "30s"}
    )
    confirm_timeout: Duration = Field(
        default=timedelta(hours=1),
        json_schema_extra={"default": "1h"},
        description="How long confirm waits for a job that goes on after submit has ended.",
    )
    spark_connection: str = Field(
        default="spark_default", min_length=1, description="Airflow's connection to Spark's master."
    )
    pool: str = Field(default="default_pool", min_length=1, description="Airflow's pool.")
    source: Source
    tables: dict[Name, StaticTable] = Field(
        default_factory=dict, description="Static tables that steps may join, by name."
    )
    transform: Steps = ()
    sinks: tuple[Sink, ...] = Field(min_length=1, max_length=1)
    quarantine: Location | None = Field(
        default=None,
        description="The table of values that do not parse; quarantine/<name> where none is named.",
    )
    spark: Options = Field(default_factory=dict, description="Spark configuration.")

    @property
    def connections(self) -> tuple[str, ...]:
        """The connections that the pipeline needs, by name."""
        ends = (self.source, *self.sinks)
        names = [end.connection for end in ends if isinstance(end, KafkaSource | KafkaSink)]
        if isinstance(self.source, KafkaSource) and self.source.value.registry:
            names.append(self.source.value.registry)
        return tuple(dict.fromkeys(names))

    @property
    def delta_sinks(self) -> tuple[DeltaSink, ...]:
        """The sinks that are Delta tables."""
        return tuple(sink for sink in self.sinks if isinstance(sink, DeltaSink))

    @property
    def quarantines(self) -> bool:
        """Whether values that do not parse are put aside."""
        source = self.source
        return (
            isinstance(source, KafkaSource)
            and source.value.format in STRUCTURED
            and source.value.on_malformed is OnMalformed.QUARANTINE
        )

    @property
    def quarantine_sink(self) -> DeltaSink:
        """The table of values that do not parse."""
        table = self.quarantine or f"quarantine/{self.name}"
        return DeltaSink.model_construct(type="delta", table=table, name=QUARANTINE)

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        if given.get("schedule") and given.get("after"):
            yield "takes schedule or after, not both"
        if given.get("name") in _as_list(given.get("after")):
            yield "cannot come after itself"
        tables = given.get("tables")
        if isinstance(tables, Mapping) and _RESERVED_VIEW in {str(key).strip() for key in tables}:
            yield "tables must not have one named 'input': that is the rows so far"
        spark = given.get("spark")
        taken = (
            sorted(_OWN_CONF.intersection(map(str, spark))) if isinstance(spark, Mapping) else []
        )
        if taken:
            yield f"spark must not hold {', '.join(taken)}: tidegate or the connection sets it"
        read = _table_of(given.get("source"))
        if read and read in map(_table_of, _as_list(given.get("sinks"))):
            yield "must not write to the table it reads"
        topics = _topics_of(given.get("source"))
        written = {_field_of(sink, "topic") for sink in _as_list(given.get("sinks"))}
        if written & topics:
            yield "must not write to the topic it reads"


def _as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _field_of(part: Any, name: str) -> Any:
    return part.get(name) if isinstance(part, Mapping) else getattr(part, name, None)


def _topics_of(source: Any) -> set[str]:
    named = (_field_of(source, "topics"), _field_of(source, "partitions"))
    return {str(topic) for topics in named for topic in topics or ()}


def _table_of(part: Any) -> str | None:
    table = _field_of(part, "table")
    return normalise_location(table) if isinstance(table, str) else None
