"""Pipelines in the order that rows flow through them."""

import pytest

from tidegate.core.spec import Pipeline
from tidegate.core.status import order_by_flow


def pipeline(name: str, *after: str) -> Pipeline:
    source = {"type": "rate", "rows_per_batch": 1}
    sinks = [{"type": "delta", "table": name}]
    return Pipeline.model_validate({"name": name, "source": source, "sinks": sinks, "after": after})


@pytest.mark.parametrize(
    ("flows", "expected"),
    [
        ([], []),
        ([("gold", "silver"), ("bronze",), ("silver", "bronze")], ["bronze", "silver", "gold"]),
        ([("b",), ("a",)], ["a", "b"]),
        ([("c", "a", "b"), ("b", "a"), ("a",)], ["a", "b", "c"]),
        ([("a", "elsewhere"), ("b",)], ["b", "a"]),
    ],
)
def test_pipelines_come_after_what_they_read(flows, expected):
    ordered = order_by_flow([pipeline(*flow) for flow in flows])
    assert [p.name for p in ordered] == expected
