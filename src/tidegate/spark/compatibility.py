"""Whether steps fit what a checkpoint remembers, by Spark's own judgement and without a batch."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from upath import UPath

from tidegate.core.checkpoint.log import OffsetEntry, list_batches, read_offsets
from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.compatibility.verdict import Difference, Verdict
from tidegate.core.errors import SinkError
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import load_pipeline
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.storage import find_files, read_bytes
from tidegate.spark.failure import describe_failure, find_condition
from tidegate.spark.query import Query
from tidegate.spark.session import open_session

_DESCRIPTIONS = ("/_metadata/", "/_stateSchema/")
"""The folders that say what a state is like; all others hold the state itself."""
_OTHER_STATE = (
    "STREAMING_STATEFUL_OPERATOR",
    "STATE_STORE_",
    "STATE_SCHEMA",
    "TRANSFORM_WITH_STATE",
    "TWS_",
)


def check_states(names: Iterable[str], settings: Settings, result: Path) -> None:
    """Hold pipelines against what their checkpoints remember, and write down what was found."""
    found = {}
    for name in names:
        pipeline = load_pipeline(settings.pipelines, name).require()
        found[name] = [asdict(difference) for difference in check_state(pipeline, settings)]
    result.write_text(json.dumps(found))


def check_state(pipeline: Pipeline, settings: Settings) -> list[Difference]:
    """Hold a pipeline's steps and sinks against its checkpoint and its tables."""
    checkpoint = settings.checkpoint_of(pipeline.name)
    session = open_session(pipeline)
    try:
        query = Query(pipeline, settings, "check", accepts_loss=False).open(session)
        batch = read_progress(checkpoint).planned_batch or 0
        entry = read_offsets(checkpoint / "offsets" / str(batch))
        with tempfile.TemporaryDirectory(prefix="tidegate-check-") as folder:
            _copy_descriptions(checkpoint, Path(folder))
            _plan_next(session, pipeline, query.result, entry, Path(folder) / "state")
    except SinkError as error:
        told = " ".join(filter(None, (error.fact, error.cause)))
        return [Difference("sink_refuses", Verdict.MIGRATE, told, error.remedy)]
    except Exception as error:
        return [_judge(error)]
    return []


def _judge(error: Exception) -> Difference:
    told = describe_failure(error)
    if find_condition(error).startswith(_OTHER_STATE):
        return Difference("state_differs", Verdict.FRESH, told)
    return Difference(
        "not_planned",
        Verdict.UNKNOWN,
        f"The steps could not be planned, so whether they fit is not known. {told}",
        "Run the check where the sources and tables of the pipeline can be read.",
    )


def _copy_descriptions(checkpoint: UPath, target: Path) -> None:
    """Copy what says what the state is like: Spark adds to it while it plans."""
    described = [
        f"state/{name}"
        for name in find_files(checkpoint / "state")
        if any(folder in f"/{name}" for folder in _DESCRIPTIONS)
    ]
    for name in described:
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(read_bytes(checkpoint / name))
    # Of a batch, Spark looks only whether it was planned, and the next one is by then.
    (target / "offsets").mkdir()
    planned = list_batches(checkpoint / "offsets")
    for batch in (*planned, max(planned) + 1):
        (target / "offsets" / str(batch)).touch()


def _plan_next(
    session: SparkSession, pipeline: Pipeline, rows: DataFrame, entry: OffsetEntry, state: Path
) -> None:
    """Plan the next batch as Spark does when a query starts, up to where it would read the source."""
    jvm: Any = session._jvm  # noqa: SLF001
    streaming = jvm.org.apache.spark.sql.execution.streaming
    mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, pipeline.output_mode.title())()
    spelled = {
        "batchWatermarkMs": entry.watermark_ms or 0,
        "batchTimestampMs": entry.timestamp_ms or 0,
        "conf": dict(entry.conf),
    }
    some_id = jvm.java.util.UUID.randomUUID
    new_map = jvm.scala.collection.mutable.HashMap
    streaming.runtime.IncrementalExecution(
        session._jsparkSession,  # noqa: SLF001
        rows._jdf.queryExecution().analyzed(),  # noqa: SLF001
        mode,
        state.as_uri(),
        some_id(),
        some_id(),
        entry.batch_id + 1,
        jvm.scala.Option.empty(),
        streaming.checkpointing.OffsetSeqMetadata.apply(json.dumps(spelled)),
        streaming.runtime.WatermarkPropagator.noop(),
        True,
        new_map(),
        new_map(),
        jvm.org.apache.spark.sql.execution.CommandExecutionMode.ALL(),
        False,
    ).executedPlan()
