"""What was put aside, told without a JVM."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import write_deltalake

AT = datetime(2026, 1, 31, 8, tzinfo=UTC)
MALFORMED = {
    "rule": "malformed",
    "reason": "the value is empty",
    "sink": None,
    "topic": "orders",
    "partition": 2,
    "offset": 1700,
    "file": None,
    "key": None,
    "value": b"\xff{",
    "row": None,
    "run_id": "run 1",
    "batch_id": 0,
    "quarantined_at": AT,
}
FAILED = MALFORMED | {
    "rule": "positive",
    "reason": "not amount > 0",
    "sink": "main",
    "topic": None,
    "partition": None,
    "offset": None,
    "file": "file:/landing/a.json",
    "value": None,
    "row": '{"id":[1]}',
    "run_id": "run 2",
    "quarantined_at": AT.replace(hour=9),
}
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("rule", "reason", "sink", "topic", "file", "row")),
        *((name, pa.binary()) for name in ("key", "value")),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("run_id", pa.string()),
        ("batch_id", pa.int64()),
        ("quarantined_at", pa.timestamp("us", tz="UTC")),
    ]
)


@pytest.fixture
def put_aside(deployment, add_spec):
    """Put rows aside for a pipeline."""
    add_spec("orders")

    def put(*rows):
        table = pa.Table.from_pylist(list(rows), SCHEMA)
        write_deltalake(str(deployment.locate("quarantine/orders")), table, mode="append")

    return put


def test_nothing_put_aside_is_told(invoke, add_spec):
    add_spec("orders")
    assert invoke("quarantine", "list").stdout == "Nothing was put aside.\n"
    assert invoke("quarantine", "show", "orders").stdout == "Nothing of the kind was put aside.\n"
    assert json.loads(invoke("quarantine", "list", "--json").stdout) == []


def test_what_was_put_aside_is_counted_by_rule(invoke, put_aside):
    put_aside(MALFORMED, MALFORMED, FAILED)
    malformed, failed = json.loads(invoke("quarantine", "list", "--json").stdout)
    assert malformed == {
        "pipeline": "orders",
        "rule": "malformed",
        "sink": None,
        "rows": 2,
        "runs": 1,
        "first": "2026-01-31T08:00:00+00:00",
        "last": "2026-01-31T08:00:00+00:00",
    }
    assert (failed["rule"], failed["sink"], failed["rows"]) == ("positive", "main", 1)
    told = invoke("quarantine", "list").stdout
    assert "malformed" in told
    assert "2026-01-31 09:00:00" in told


@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ((), ["malformed", "positive"]),
        (("--rule", "positive"), ["positive"]),
        (("--run", "run 1"), ["malformed"]),
        (("--since", "2026-01-31T08:30:00"), ["positive"]),
        (("--rule", "positive", "--run", "run 1"), []),
        (("--limit", "1"), ["positive"]),
    ],
)
def test_some_of_it_can_be_chosen(invoke, put_aside, options, rules):
    put_aside(MALFORMED, FAILED)
    rows = json.loads(invoke("quarantine", "show", "orders", "--json", *options).stdout)
    assert sorted(row["rule"] for row in rows) == rules


def test_the_newest_are_shown_first_and_of_a_batch_in_the_order_of_their_places(invoke, put_aside):
    put_aside(*({**MALFORMED, "offset": offset} for offset in (3, 1, 2)), FAILED)
    shown = invoke("quarantine", "show", "orders", "--json", "--limit", "3").stdout
    assert [row["offset"] for row in json.loads(shown)] == [None, 1, 2]


def test_place_reason_and_content_are_shown_as_they_are(invoke, put_aside):
    put_aside(MALFORMED, FAILED)
    told = invoke("quarantine", "show", "orders").stdout
    for part in ("orders-2 at 1,700", "the value is empty", r"\xff{", '{"id":[1]}', "a.json"):
        assert part in told


def test_a_pipeline_that_is_not_there_is_told(invoke, deployment):
    assert "'nope'" in str(invoke("quarantine", "show", "nope").exception)
