"""Why a run failed, in one line that holds no whole record; without a JVM."""

import pytest

from tidegate.core.errors import SinkError
from tidegate.spark.failure import describe_failure

RECORD = "x," * 20_000


@pytest.mark.parametrize(
    "told",
    [
        f"[STREAM_FAILED] it failed\n[MALFORMED_CSV_RECORD] Malformed CSV record: {RECORD}",
        f"[PYTHON_EXCEPTION] it failed\nValueError: {RECORD}",
        f"Job aborted\nCaused by: java.lang.IllegalStateException: {RECORD}",
        RECORD,
    ],
)
def test_what_others_tell_is_cut(told):
    described = describe_failure(RuntimeError(told))
    assert described.endswith("…")
    assert "x,x,x" in described
    assert len(described) < 500


def test_what_is_short_and_what_tidegate_itself_tells_is_whole():
    assert describe_failure(RuntimeError("[SOME_CONDITION] It is so.")) == (
        "Spark failed: [SOME_CONDITION] It is so."
    )
    assert describe_failure(SinkError("a" * 900)) == "a" * 900


@pytest.mark.parametrize(
    "condition",
    [
        "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
        "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
        "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
    ],
)
def test_other_state_than_the_checkpoint_has_is_told_with_a_remedy(condition):
    told = f"[STREAM_FAILED] Query failed: [{condition}] It does not match. SQLSTATE: 42K03"
    assert "give the pipeline a new name" in describe_failure(RuntimeError(told))
