"""Writing where somebody else writes, too."""

import pytest

from tidegate.spark.conflict import insist


def test_what_somebody_else_has_written_meanwhile_is_written_around():
    told = [
        "[DELTA_PROTOCOL_CHANGED] Creating the table",
        "[DELTA_CONCURRENT_APPEND] Files were added",
    ]

    def write():
        if told:
            raise RuntimeError(told.pop())

    insist(write)
    assert not told
    told[:] = ["something else"] * 2
    with pytest.raises(RuntimeError, match="something else"):
        insist(write)
    assert len(told) == 1
    told[:] = ["[DELTA_CONCURRENT_WRITE]"] * 30
    with pytest.raises(RuntimeError, match="DELTA_CONCURRENT_WRITE"):
        insist(write)
    assert len(told) == 10
