"""Small files of a table, which OPTIMIZE would merge."""

from __future__ import annotations

from collections import Counter

from tidegate.core.maintenance.book import StepKind
from tidegate.core.maintenance.history import TableHistory
from tidegate.core.maintenance.step import TablePlan

MEGABYTE = 1024 * 1024


def plan_optimize(plan: TablePlan, history: TableHistory) -> TablePlan:
    """Decide whether the files of a table are worth merging."""
    policy, files = plan.table.policy, history.active.values()
    if not policy.optimize:
        return plan
    limit = policy.small_file_mb * MEGABYTE
    small = Counter(file.partition for file in files if file.size_bytes < limit)
    # One of each partition is left, so that many small partitions are no reason.
    spared = small.total() - len(small)
    told = f"{small.total():,} of {len(files):,} files are small"
    if spared < policy.min_small_files:
        return plan.pass_over(told)
    return plan.do(StepKind.OPTIMIZE, f"{told}, and {spared:,} can be spared")
