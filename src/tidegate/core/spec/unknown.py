"""Fields of JSON that a schema does not name."""

from __future__ import annotations

from enum import StrEnum

RESCUED = "_rescued"
"""The column that holds the fields which the schema does not name, as JSON."""


class OnUnknown(StrEnum):
    """What becomes of a field that the schema does not name."""

    RESCUE = "rescue"
    EVOLVE = "evolve"
    DROP = "drop"
    FAIL = "fail"
