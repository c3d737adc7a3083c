"""Why a run failed, in one line."""

from __future__ import annotations

import re

from pyspark.errors import PythonException

from tidegate.core.errors import TidegateError
from tidegate.spark.sources import first_line

_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_]{3,})(\.[A-Z0-9_]+)*\] [^\n]+")
_CAUSE = re.compile(r"^Caused by: (?:[\w$]+\.)*(?P<told>[\w$]+: [^\n]+)", re.MULTILINE)
_RAISED = re.compile(r"^(?:[\w.]+\.)?(\w*(?:Error|Exception): [^\n]+)", re.MULTILINE)
_WRAPPERS = frozenset({"STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR", "TASK_WRITE_FAILED"})


def describe_failure(error: BaseException) -> str:
    """Say in one line why a run failed."""
    if isinstance(error, TidegateError):
        return str(error)
    if isinstance(error, PythonException):
        raised = [line for line in str(error).splitlines() if line.strip()]
        return f"Python code in a step failed: {raised[-1].strip()}"
    raised = _RAISED.findall(str(error)) if "[PYTHON_EXCEPTION]" in str(error) else []
    if raised:
        return f"Python code in an executor failed: {raised[-1]}"
    # Spark wraps the condition that a person needs into several that say only that a job failed.
    conditions = [m for m in _CONDITION.finditer(str(error)) if m["name"] not in _WRAPPERS]
    if conditions:
        return f"Spark failed: {conditions[0][0].strip()}"
    causes = _CAUSE.findall(str(error))  # of a client's error, such as Kafka's, the innermost
    if causes:
        return f"Spark failed: {causes[-1].strip()}"
    return f"{type(error).__name__}: {first_line(error)}"
