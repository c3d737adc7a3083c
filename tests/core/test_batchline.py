"""A batch in one line of a log."""

import pytest

from tidegate.core.batchline import describe_batch
from tidegate.core.ledger import BatchRecord, Metrics, SinkRecord


def describe(end=None, start=None, sinks=None, **parts):
    sources = [{"description": "x", "startOffset": start, "endOffset": end}]
    fields = {"input_rows": 1500, "seconds": 1.25, "sinks": sinks or {"main": SinkRecord(1500, 3)}}
    return describe_batch(
        BatchRecord(batch_id=7, run_id="r", committed_at="t", sources=sources, **fields | parts)
    )


@pytest.mark.parametrize(
    ("start", "end", "told"),
    [
        ({"logOffset": 3}, {"logOffset": 4}, "1,500 rows read (file log 4), "),
        (None, {"logOffset": 0}, "1,500 rows read (file log 0), "),
        (
            {"t": {"0": 1000, "1": 5}},
            {"t": {"0": 2500, "1": 5, "10": 7}},
            "1,500 rows read (t-0 1,000 to 2,500, t-10 0 to 7), ",
        ),
        (None, {"t": {"0": 5}}, "1,500 rows read (t-0 0 to 5), "),
        (None, None, "1,500 rows read, "),
    ],
)
def test_a_line_has_id_rows_offsets_and_seconds(start, end, told):
    assert describe(end, start) == f"batch 7: {told}1,500 rows in v3, 1.25 s"


def test_of_many_partitions_the_first_are_named():
    told = describe({"t": {str(number): 5 for number in range(25)}})
    assert "t-9 0 to 5 and 15 more)" in told
    assert "t-10" not in told


def test_what_was_put_aside_or_left_out_is_told():
    told = describe(
        sinks={"a": SinkRecord(10, None), "b": SinkRecord(None, 4), "c": SinkRecord(0, 1, True)},
        quarantined=4,
        failed={"positive": 4, "other": 0},
        metrics=Metrics(late_rows=2),
    )
    assert told == (
        "batch 7: 1,500 rows read, 10 rows of a, ? rows in v4 of b, c already had it, "
        "4 fail positive, 4 quarantined, at least 2 too late and left out, 1.25 s"
    )


def test_what_a_killed_driver_could_not_tell_is_a_question_mark():
    told = describe(input_rows=None, seconds=None, quarantined=None, failed=None)
    assert told == "batch 7: ? rows read, 1,500 rows in v3, ? s"
