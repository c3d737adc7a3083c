"""Why a run failed, in one line."""

from __future__ import annotations

import re

from pyspark.errors import PythonException

from tidegate.core.errors import TidegateError
from tidegate.spark.sources import first_line

# Several conditions may stand in one line, each wrapped into the one before.
_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_]{3,})(\.[A-Z0-9_]+)*\] (?=(?P<told>[^\n]+))")
_CAUSE = re.compile(r"^Caused by: (?:[\w$]+\.)*(?P<told>[\w$]+: [^\n]+)", re.MULTILINE)
_RAISED = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception): [^\n]+)", re.MULTILINE)
_LONGEST = 400  # characters
_WRAPPERS = frozenset({"STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR", "TASK_WRITE_FAILED"})


# A Delta source asks for a new start when the schema of its table changes while it is read.
_RESTARTS = frozenset(
    {
        "DELTA_SCHEMA_CHANGED",
        "DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS",
        "DELTA_SCHEMA_CHANGED_WITH_VERSION",
        "DELTA_STREAMING_METADATA_EVOLUTION",
    }
)
_OTHER_STATE = (
    "The steps now keep other state than the checkpoint has. Undo the change, or give the pipeline a "
    "new name and a new table, and so a checkpoint of its own."
)
_REMEDIES = {
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA": _OTHER_STATE,
    "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY": _OTHER_STATE,
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE": _OTHER_STATE,
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE": _OTHER_STATE,
    "CANNOT_LOAD_STATE_STORE": "'tidegate checkpoint doctor' names the file; restore it from a backup.",
    "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG": "Say schema_tracking: true in the "
    "source, in a pipeline with a new name, and so a checkpoint of its own.",
    "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION": "See that the steps and the "
    "sink's table fit the new columns; then say so in the spec, by "
    "spark: {spark.databricks.delta.streaming.allowSourceColumnRename: always}, or "
    "…allowSourceColumnDrop or …allowSourceColumnTypeChange.",
}


def asks_for_restart(error: BaseException) -> bool:
    """Whether a query that is started again goes on where this one failed."""
    return any(found["name"] in _RESTARTS for found in _CONDITION.finditer(str(error)))


def find_condition(error: BaseException) -> str:
    """Find the name of the condition that Spark failed with; empty where there is none."""
    conditions = (m for m in _CONDITION.finditer(str(error)) if m["name"] not in _WRAPPERS)
    return next((found["name"] for found in conditions), "")


def describe_failure(error: BaseException) -> str:
    """Say in one line why a run failed."""
    if isinstance(error, TidegateError):
        return str(error)
    if isinstance(error, PythonException):
        raised = [line for line in str(error).splitlines() if line.strip()]
        return f"Python code in a step failed: {_cut(raised[-1])}"
    raised = _RAISED.findall(str(error)) if "[PYTHON_EXCEPTION]" in str(error) else []
    if raised:
        return f"Python code in an executor failed: {_cut(raised[-1])}"
    # Spark wraps the condition that a person needs into several that say only that a job failed.
    conditions = [m for m in _CONDITION.finditer(str(error)) if m["name"] not in _WRAPPERS]
    if conditions:
        told = f"Spark failed: {_cut(conditions[0][0] + conditions[0]['told'])}"
        return " ".join(filter(None, [told, _REMEDIES.get(conditions[0]["name"])]))
    causes = _CAUSE.findall(str(error))  # of a client's error, such as Kafka's, the innermost
    if causes:
        return f"Spark failed: {_cut(causes[-1])}"
    return f"{type(error).__name__}: {_cut(first_line(error))}"


def _cut(told: str) -> str:
    """Cut what others tell, which may be a whole record: the ledger is no place for those."""
    told = told.strip()
    return told if len(told) <= _LONGEST else f"{told[:_LONGEST]}…"
