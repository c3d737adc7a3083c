"""A pipeline, declared once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from itertools import combinations
from typing import Annotated, Any

from croniter import croniter
from pydantic import AfterValidator, BeforeValidator, Field, NonNegativeInt, StringConstraints

from tidegate.core.spec.alerts import Alerts
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
from tidegate.core.spec.budget import Budget
from tidegate.core.spec.expectation import Expectation, OnFail, find_rule_twins
from tidegate.core.spec.files import FilesSource
from tidegate.core.spec.kafka import KafkaSource, OnMalformed, compile_pattern, list_names
from tidegate.core.spec.maintenance import Maintenance
from tidegate.core.spec.places import field_of, list_places, name_quarantine
from tidegate.core.spec.sinks.base import MAIN, QUARANTINE
from tidegate.core.spec.sinks.delta import DeltaMode, DeltaSink, SchemaChange
from tidegate.core.spec.sinks.files import FilesSink
from tidegate.core.spec.sinks.jdbc import JdbcSink
from tidegate.core.spec.sinks.kafka import KafkaSink
from tidegate.core.spec.sinks.sink import Sink
from tidegate.core.spec.sinks.spark import SparkSink
from tidegate.core.spec.source import DeltaSource, RateSource, Source, SparkSource
from tidegate.core.spec.transform import ChangeFormat, ChangesStep, StaticTable, Steps
from tidegate.core.spec.unknown import RESCUED, OnUnknown

_PRESETS = ("@once", "@continuous", "@hourly", "@daily", "@weekly", "@monthly", "@yearly")
_CRON_FIELDS = ("minute", "hour", "day", "month", "weekday")
_RESERVED_VIEW = "input"
_SEVERAL = 2
_EVOLVE = OnUnknown.EVOLVE

ONLY_SOURCE = "0"
"""What a checkpoint calls the source of a query that has no other."""

BATCH = "_batch"
"""The column of the batch that gave a result, with output_mode update."""

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


class OutputMode(StrEnum):
    """Which results of an aggregation a batch gives."""

    APPEND = "append"
    UPDATE = "update"
    COMPLETE = "complete"


_TRIGGER = "available_now"
_OTHER_TRIGGERS = {
    "once": "once reads all that waits as one batch, whatever the bounds say",
    "continuous": "a continuous query never ends, so no run of it could be confirmed",
    "processing_time": "such a query never ends, so no run of it could be confirmed",
}


def _check_trigger(trigger: str) -> str:
    if trigger != _TRIGGER:
        why = _OTHER_TRIGGERS.get(trigger.lower().replace("processingtime", "processing_time"))
        reason = f": {why}" if why else ""
        raise ValueError(
            f"must be {_TRIGGER}, bounded batches up to the end{reason}; for fresher data, "
            "schedule runs more often"
        )
    return trigger


OWN_DAGS = ("alerts", "backfill", "maintenance", "replay")
"""DAGs beside those of pipelines, whose names are taken."""


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
    source: Source | None = None
    sources: dict[Name, Source] = Field(
        default_factory=dict,
        description="Several sources by name, instead of source; steps see each by its name.",
    )
    tables: dict[Name, StaticTable] = Field(
        default_factory=dict, description="Static tables that steps may join, by name."
    )
    transform: Steps = ()
    output_mode: OutputMode = Field(
        default=OutputMode.APPEND,
        description="For steps that aggregate: append gives a result once it is final, update each "
        "time it changes, complete all results each time.",
    )
    trigger: Annotated[str, AfterValidator(_check_trigger)] = Field(
        default=_TRIGGER, description="Always available_now: bounded batches up to the end."
    )
    budget: Budget | None = Field(
        default=None, description="How much one run may do; the next one goes on from there."
    )
    expect: tuple[Expectation, ...] = Field(
        default=(), description="What rows must be like after the last step, for all sinks."
    )
    sinks: tuple[Sink, ...] = Field(min_length=1)
    schema_change: SchemaChange | None = Field(
        default=None,
        description="What becomes of columns that a Delta table does not have: evolve adds them, "
        f"rescue keeps them in {RESCUED} (the default where rows come from outside and are "
        "appended), fail stops the run (the default elsewhere).",
    )
    quarantine: Location | None = Field(
        default=None,
        description="The table of what is put aside; quarantine/<name> where none is named.",
    )
    maintenance: Maintenance = Field(
        default_factory=Maintenance,
        description="How its tables, and what it keeps beside them, are tidied up.",
    )
    alerts: Alerts = Field(
        default_factory=Alerts, description="What somebody is to be told of, and how."
    )
    spark: Options = Field(default_factory=dict, description="Spark configuration.")

    @property
    def inputs(self) -> dict[str, Source]:
        """All sources, by the names that the checkpoint has for them."""
        return {ONLY_SOURCE: self.source} if self.source else dict(self.sources)

    @property
    def kafka_inputs(self) -> dict[str, KafkaSource]:
        """The sources that are Kafka topics."""
        return {
            name: source for name, source in self.inputs.items() if isinstance(source, KafkaSource)
        }

    @property
    def adds_unknown_fields(self) -> bool:
        """Whether fields that the source's schema does not name become columns."""
        match self.source:
            case KafkaSource(value=value):
                return value.unknown_fields is _EVOLVE
            case FilesSource(unknown_fields=unknown):
                return unknown is _EVOLVE
        return False

    @property
    def table_policy(self) -> SchemaChange:
        """What becomes of columns that a table does not have, said or not."""
        if self.adds_unknown_fields:
            return SchemaChange.EVOLVE
        if self.schema_change:
            return self.schema_change
        is_outside = not any(
            isinstance(end, DeltaSource | RateSource) for end in self.inputs.values()
        )
        is_raw = is_outside and all(sink.mode is DeltaMode.APPEND for sink in self.delta_sinks)
        return SchemaChange.RESCUE if is_raw else SchemaChange.FAIL

    @property
    def connections(self) -> tuple[str, ...]:
        """The connections that the pipeline needs, by name."""
        ends = (*self.inputs.values(), *self.sinks)
        kinds = (KafkaSource, KafkaSink, JdbcSink, SparkSource, SparkSink)
        names = [end.connection for end in ends if isinstance(end, kinds) and end.connection]
        registries = (source.value.registry for source in self.kafka_inputs.values())
        names += [registry for registry in registries if registry]
        return tuple(dict.fromkeys(names))

    @property
    def delta_sinks(self) -> tuple[DeltaSink, ...]:
        """The sinks that are Delta tables."""
        return tuple(sink for sink in self.sinks if isinstance(sink, DeltaSink))

    @property
    def files_sinks(self) -> tuple[FilesSink, ...]:
        """The sinks that are folders of files."""
        return tuple(sink for sink in self.sinks if isinstance(sink, FilesSink))

    @property
    def puts_records_aside(self) -> bool:
        """Whether records of files that do not parse are put aside, as no step keeps them."""
        source, first = self.source, next(iter(self.transform), None)
        is_kept = isinstance(source, FilesSource) and source.keeps_malformed
        is_change = isinstance(first, ChangesStep) and first.changes is ChangeFormat.DEBEZIUM
        return is_kept and is_change

    @property
    def quarantines(self) -> bool:
        """Whether anything can be put aside: values that do not parse, rows that break a rule."""
        return (
            self.puts_records_aside
            or any(
                source.may_be_malformed and source.value.on_malformed is OnMalformed.QUARANTINE
                for source in self.kafka_inputs.values()
            )
            or any(rule.on_fail is OnFail.QUARANTINE for rule in self.rules)
        )

    @property
    def rules(self) -> tuple[Expectation, ...]:
        """All rules, those of its sinks included."""
        return (*self.expect, *(rule for sink in self.sinks for rule in sink.rules))

    @property
    def quarantine_sink(self) -> DeltaSink:
        """The table of what is put aside."""
        table = self.quarantine or name_quarantine(self.name)
        return DeltaSink.model_construct(type="delta", table=table, name=QUARANTINE)

    @classmethod
    def find_conflicts(cls, given: Mapping[str, Any]) -> Iterator[str]:
        """Yield what is wrong between fields, looking at what was given."""
        if given.get("schedule") and given.get("after"):
            yield "takes schedule or after, not both"
        if given.get("name") in _as_list(given.get("after")):
            yield "cannot come after itself"
        if given.get("name") in OWN_DAGS:
            yield f"name must not be one of {', '.join(OWN_DAGS)}, the DAGs that tidegate brings"
        yield from _find_misnamed_views(given)
        spark = given.get("spark")
        taken = (
            sorted(_OWN_CONF.intersection(map(str, spark))) if isinstance(spark, Mapping) else []
        )
        if taken:
            yield f"spark must not hold {', '.join(taken)}: tidegate or the connection sets it"
        sources = _list_sources(given)
        read = {table for table in map(_table_of, sources) if table}
        if read & set(map(_table_of, _as_list(given.get("sinks")))):
            yield "must not write to the table it reads"
        if any(
            _sends_to(sink, source) for sink in _as_list(given.get("sinks")) for source in sources
        ):
            yield "must not write to the topic it reads"
        yield from find_rule_twins(given.get("expect"))
        yield from _find_misused_modes(given)
        yield from _find_shared_places(given)
        sinks = [sink for sink in _as_list(given.get("sinks")) if field_of(sink, "type")]
        named = [field_of(sink, "name") or MAIN for sink in sinks]
        twins = sorted({str(name) for name in named if named.count(name) > 1})
        if twins:
            yield f"sinks must have names of their own; more than one is named {', '.join(twins)}"


def _find_shared_places(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the places where rows of two kinds would be taken for each other's."""
    for one, other in combinations(list_places(given), 2):
        for place, beside in ((one, other), (other, one)):
            clash = place.find_clash(beside)
            if clash:
                yield f"{place.spell_field()}: {clash}"
                break  # the other of the two would be told the same


def _find_misnamed_views(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the names by which steps see sources and tables."""
    sources, tables = given.get("sources"), given.get("tables")
    named = {str(key).strip() for key in sources} if isinstance(sources, Mapping) else set()
    static = {str(key).strip() for key in tables} if isinstance(tables, Mapping) else set()
    for field, names in (("sources", named), ("tables", static)):
        if _RESERVED_VIEW in names:
            yield f"{field} must not have one named {_RESERVED_VIEW!r}: that is the rows so far"
    if named & static:
        yield f"sources and tables both have {', '.join(sorted(named & static))}"
    if (given.get("source") is None) == (not sources):
        yield "needs source, or sources by name"
    elif sources and len(named) < _SEVERAL:
        yield "sources is for two or more; a single one is source"
    elif _EVOLVE in [
        field_of(part, "on_unknown")
        for one in _list_several(given)
        for part in (one, field_of(one, "value"))
    ]:
        yield f"on_unknown {_EVOLVE} is only for a single source"
    elif sources and not given.get("transform"):
        yield "several sources need a step that brings their rows together"


def _list_several(given: Mapping[str, Any]) -> list[Any]:
    sources = given.get("sources")
    return list(sources.values()) if isinstance(sources, Mapping) else []


def _list_sources(given: Mapping[str, Any]) -> list[Any]:
    return [given.get("source"), *_list_several(given)]


def _find_misused_modes(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sinks that could not be right by the output mode."""
    mode = given.get("output_mode", OutputMode.APPEND)
    for number, sink in enumerate(_as_list(given.get("sinks"))):
        kind, way = field_of(sink, "type"), str(field_of(sink, "mode") or "append")
        if (
            kind == "delta"
            and way != "append"
            and given.get("schema_change") == SchemaChange.RESCUE
        ):
            yield f"sinks[{number}] is of mode {way}; schema_change rescue is for mode append"
        told: str | None = None
        match mode:
            case OutputMode.UPDATE:
                told = _find_misused_update(sink, kind, way)
            case OutputMode.COMPLETE:
                told = _find_misused_complete(kind, way)
            case OutputMode.APPEND if way == "overwrite" and kind == "delta":
                told = (
                    "would keep the last batch's rows alone; mode overwrite goes with output_mode "
                    "complete"
                )
        if told:
            yield f"sinks[{number}] {told}"


def _find_misused_update(sink: Any, kind: Any, way: str) -> str | None:
    """Say why a sink cannot keep results of which each batch gives those that have changed."""
    if kind == "files":
        return "keeps files, which cannot take back a result of update"
    if kind == "spark":
        return (
            "appends, and would keep every state of a result; output_mode update needs a sink of "
            "mode upsert, or a function that knows results by their keys"
        )
    if kind not in ("delta", "jdbc"):
        return None
    if way != "upsert":
        return (
            "would keep every state of a result; output_mode update needs mode upsert, by the keys "
            "of the result"
        )
    named = field_of(sink, "sequence")
    first = next(iter([named] if isinstance(named, str) else named or []), None)
    if first is not None and str(first).strip().lower() != BATCH:
        return (
            f"would take an older state of a result for the newer one by {first}; with output_mode "
            f"update, sequence must be {BATCH} or begin with it: the batch that gave the result"
        )
    return None


def _find_misused_complete(kind: Any, way: str) -> str | None:
    """Say why a sink cannot keep results of which each batch gives all."""
    match kind:
        case "files":
            return "keeps files, which cannot take back a result of complete"
        case "kafka" | "spark":
            return (
                "would be sent all results again with every batch; output_mode complete needs a "
                "Delta table of mode overwrite, or a function that replaces what it wrote before"
            )
        case "jdbc":
            return (
                "would keep all results of every batch, and a database's table has no mode that "
                "replaces them; take output_mode update with mode upsert, or a Delta table of mode "
                "overwrite"
            )
        case "delta" if way != "overwrite":
            return (
                "would keep all results of every batch; output_mode complete needs mode overwrite"
            )
    return None


def _as_list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _sends_to(sink: Any, source: Any) -> bool:
    """Whether a sink sends to a topic that a source reads, by the same connection."""
    topic = field_of(sink, "topic")
    if not topic or _connection_of(sink) != _connection_of(source):
        return False  # on another cluster, a topic of the same name is another one
    named = (field_of(source, field) for field in ("topics", "partitions"))
    pattern = compile_pattern(field_of(source, "topic_pattern"))
    is_named = any(topic in list_names(topics) for topics in named)
    return is_named or bool(pattern and pattern.search(str(topic)))


def _connection_of(end: Any) -> Any:
    return field_of(end, "connection") or KafkaSource.model_fields["connection"].default


def _table_of(part: Any) -> str | None:
    table = field_of(part, "table")
    return normalise_location(table) if isinstance(table, str) else None
