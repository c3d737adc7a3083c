"""Whether a streaming query keeps state from one batch to the next."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import DataFrame

_STATEFUL = re.compile(r"Aggregate|Deduplicate\w*|Distinct|GlobalLimit|\w*WithState\w*|\w*Group\w*")


def is_stateful(rows: DataFrame) -> bool:
    """Whether any operator on streaming rows must remember earlier batches."""
    return _keeps_state(rows._jdf.queryExecution().analyzed())  # noqa: SLF001


def joins_for_ever(rows: DataFrame) -> bool:
    """Whether two streams are joined of which one has no watermark, so that nothing is forgotten."""
    return _joins_for_ever(rows._jdf.queryExecution().analyzed())  # noqa: SLF001


def _joins_for_ever(plan: Any) -> bool:
    streaming = _list_streaming(plan)
    is_stream_join = plan.nodeName() == "Join" and len(streaming) > 1
    if is_stream_join and not all(map(_has_watermark, streaming)):
        return True
    return any(map(_joins_for_ever, streaming))


def _has_watermark(plan: Any) -> bool:
    is_mark = plan.nodeName() == "EventTimeWatermark"
    return is_mark or any(map(_has_watermark, _list_streaming(plan)))


def _keeps_state(plan: Any) -> bool:
    streaming = _list_streaming(plan)
    if not streaming:
        return False
    name = plan.nodeName()
    is_stream_join = name == "Join" and len(streaming) > 1
    return bool(_STATEFUL.fullmatch(name)) or is_stream_join or any(map(_keeps_state, streaming))


def _list_streaming(plan: Any) -> list[Any]:
    children = plan.children()
    found = (children.apply(number) for number in range(children.size()))
    return [child for child in found if child.isStreaming()]
