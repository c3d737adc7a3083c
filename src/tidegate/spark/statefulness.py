"""Whether a streaming query keeps state from one batch to the next."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import DataFrame

_STATEFUL = re.compile(r"Aggregate|Deduplicate\w*|Distinct|GlobalLimit|\w*WithState\w*|\w*Group\w*")


def is_stateful(rows: DataFrame) -> bool:
    """Whether any operator on streaming rows must remember earlier batches."""
    return _keeps_state(rows._jdf.queryExecution().analyzed())  # noqa: SLF001


def _keeps_state(plan: Any) -> bool:
    children = plan.children()
    streaming = [
        child
        for child in (children.apply(number) for number in range(children.size()))
        if child.isStreaming()
    ]
    if not streaming:
        return False
    name = plan.nodeName()
    is_stream_join = name == "Join" and len(streaming) > 1
    return bool(_STATEFUL.fullmatch(name)) or is_stream_join or any(map(_keeps_state, streaming))
