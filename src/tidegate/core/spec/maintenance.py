"""How a pipeline's tables, and what it keeps beside them, are tidied up."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field

from tidegate.core.spec.base import Count, Duration, SpecModel, format_duration


def _at_least(least: timedelta, why: str) -> AfterValidator:
    def check(value: timedelta) -> timedelta:
        if value < least:
            raise ValueError(f"must be at least {format_duration(least)}: {why}")
        return value

    return AfterValidator(check)


_VACUUM = timedelta(days=7)
_LEDGER = timedelta(days=90)
_BACKFILLS = timedelta(days=30)


class Maintenance(SpecModel):
    """What is tidied up, and how much is kept; what a reader of a table still needs always is."""

    optimize: bool = Field(
        default=True,
        description="Merge small files by OPTIMIZE; cluster, where cluster_by is said.",
    )
    min_small_files: Count = Field(
        default=16, description="OPTIMIZE once so many small files would go."
    )
    small_file_mb: Count = Field(
        default=64, description="A file of fewer megabytes is a small one."
    )
    vacuum: bool = Field(
        default=True, description="Delete the files of versions that nobody needs any more."
    )
    vacuum_retention: Annotated[
        Duration,
        _at_least(timedelta(hours=1), "a shorter one deletes files that are being written"),
    ] = Field(
        default=_VACUUM,
        json_schema_extra={"default": format_duration(_VACUUM)},
        description="Keep the files of a version for so long after it was replaced.",
    )
    log_retention: (
        Annotated[Duration, _at_least(_VACUUM, "Delta needs the log of files that it keeps")] | None
    ) = Field(
        default=None,
        description="Keep the log of a version for so long; as the table says where none is said.",
    )
    ledger_retention: Annotated[
        Duration, _at_least(timedelta(days=1), "runs of today are looked at")
    ] = Field(
        default=_LEDGER,
        json_schema_extra={"default": format_duration(_LEDGER)},
        description="Keep what is written down of runs and batches for so long.",
    )
    keep_batches: Count = Field(
        default=1000, description="Keep what is written down of so many batches, however old."
    )
    backfill_retention: Annotated[
        Duration, _at_least(timedelta(days=1), "one of today is looked at")
    ] = Field(
        default=_BACKFILLS,
        json_schema_extra={"default": format_duration(_BACKFILLS)},
        description="Keep finished backfills and replays for so long.",
    )
