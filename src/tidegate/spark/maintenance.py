"""Tidying up Delta tables: what was decided without a JVM, done by Spark.

Each step is decided anew right before it is done, so that what a reader needs counts as of then. One
that fails stops no other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from tidegate.core.errors import MaintenanceError
from tidegate.core.lease import LeaseFolder, hold_lease
from tidegate.core.maintenance.book import Done, MaintenanceBook, StepKind
from tidegate.core.maintenance.guard import Retention
from tidegate.core.maintenance.logcare import LOG_RETENTION
from tidegate.core.maintenance.plan import Planner
from tidegate.core.maintenance.smallfiles import MEGABYTE
from tidegate.core.maintenance.step import Step
from tidegate.core.maintenance.tables import OwnedTable
from tidegate.core.settings import Settings
from tidegate.core.sidetable import SIDE_TABLES
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.storage import find_files
from tidegate.spark.conflict import insist
from tidegate.spark.failure import describe_failure
from tidegate.spark.session import open_session

_DELTA = "spark.databricks.delta"
_LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_TASKS_PER_CORE = 4
_FOR_VACUUM = {
    # Delta 4.4 leaves whatever is said after RETAIN out of account, unless told not to.
    f"{_DELTA}.vacuum.retentionWindowIgnore.enabled": "false",
    # Fewer hours than the table says are those of the spec, held against all readers.
    f"{_DELTA}.retentionDurationCheck.enabled": "false",
    # A commit that brings nothing would have every reader of the table started.
    f"{_DELTA}.vacuum.logging.enabled": "false",
}


def maintain_tables(pipeline: Pipeline, settings: Settings) -> None:
    """Do what there is to do for the tables of a pipeline, and write down what was done."""
    planner = Planner.load(settings)
    book = MaintenanceBook.of(settings, pipeline.name)
    work = _Work(pipeline, settings, planner, book, open_session(pipeline))
    with hold_lease(
        book.lease, "maintenance", seconds=settings.lease_seconds, tell=work.tell
    ) as lease:
        failures = []
        for table in planner.list_tables(pipeline.name):
            lease.check()
            failures += work.look_after(table)
    if failures:
        raise MaintenanceError(
            "; ".join(failures),
            remedy="What else there was to do is done; the next time tries again.",
        )


@dataclass(frozen=True)
class _Work:
    pipeline: Pipeline
    settings: Settings
    planner: Planner
    book: MaintenanceBook
    session: SparkSession

    def look_after(self, table: OwnedTable) -> list[str]:
        """Do what there is to do for a table, and tell what failed."""
        failures = []
        warnings: dict[str, None] = {}
        for kind in StepKind:
            plan = self.planner.look_at(table, [kind])
            warnings |= dict.fromkeys(plan.warnings)
            for step in (step for step in plan.steps if step.kind is kind):
                try:
                    self._do(table, step)
                except Exception as error:
                    failures.append(f"{step.kind} of {table.name}: {describe_failure(error)}")
        for warning in warnings:
            self.tell(f"{table.name}: {warning}")
        return failures

    def _do(self, table: OwnedTable, step: Step) -> None:
        if step.kind is StepKind.OPTIMIZE and self._is_in_the_way(table):
            self.tell(f"{table.name}: {step.kind} waits, since a run is changing its rows")
            return
        self.tell(f"{table.name}: {step.kind}: {step.reason}")
        began, at = time.monotonic(), datetime.now(UTC)
        done = self._perform(table, step, Done(at.isoformat(timespec="seconds"), step.reason))
        done = replace(done, seconds=round(time.monotonic() - began, 3))
        self.book.record(table.name, step.kind, done)
        self.tell(f"{table.name}: {step.kind}: {done.describe()}")

    def _is_in_the_way(self, table: OwnedTable) -> bool:
        # Of two that take the same files away, the later one fails; let it be neither.
        checkpoint = self.settings.checkpoint_of(self.pipeline.name)
        return not table.is_appended and LeaseFolder.beside(checkpoint).find_held() is not None

    def _perform(self, table: OwnedTable, step: Step, done: Done) -> Done:
        match step.kind:
            case StepKind.OPTIMIZE:
                return self._optimize(table, done)
            case StepKind.LOG_RETENTION:
                return self._keep_log(table, step, done)
            case StepKind.CLEAN_LOG:
                return self._clean_log(table, done)
            case StepKind.VACUUM:
                return self._vacuum(table, step, done)

    def _optimize(self, table: OwnedTable, done: Done) -> Done:
        size = str(table.policy.small_file_mb * MEGABYTE)
        with self._set({f"{_DELTA}.optimize.minFileSize": size}):
            (told,) = insist(lambda: self._sql(f"OPTIMIZE {_quote(table)}").collect())
        metrics = told["metrics"]
        return replace(
            done,
            files_removed=metrics["numFilesRemoved"],
            files_added=metrics["numFilesAdded"],
            bytes_removed=metrics["filesRemoved"]["totalSize"],
            bytes_added=metrics["filesAdded"]["totalSize"],
        )

    def _keep_log(self, table: OwnedTable, step: Step, done: Done) -> Done:
        hours = (step.span or timedelta()) // timedelta(hours=1)
        spelled = f"'{LOG_RETENTION}' = 'interval {hours} hours'"
        insist(lambda: self._sql(f"ALTER TABLE {_quote(table)} SET TBLPROPERTIES ({spelled})"))
        return done

    def _clean_log(self, table: OwnedTable, done: Done) -> Done:
        folder = table.log.table / "_delta_log"
        before = find_files(folder)
        self._sql(f"DESCRIBE DETAIL {_quote(table)}")  # which has Delta look for newer versions
        # Delta cleans up with each checkpoint that it writes, and has no command for it.
        jvm: Any = self.session._jvm  # noqa: SLF001
        log = jvm.org.apache.spark.sql.delta.DeltaLog
        log.forTable(self.session._jsparkSession, table.url).checkpoint()  # noqa: SLF001
        return _count_gone(done, before, find_files(folder))

    def _vacuum(self, table: OwnedTable, step: Step, done: Done) -> Done:
        retention = Retention(step.span or table.policy.vacuum_retention)
        before_ms = int((time.time() - retention.hours * 3600) * 1000)
        before = _find_data(table)
        # Out of the box the folder of a small table is listed by ten thousand tasks.
        tasks = self.session.sparkContext.defaultParallelism * _TASKS_PER_CORE
        with self._set(_FOR_VACUUM | {_LISTING: str(tasks)}):
            DeltaTable.forPath(self.session, table.url).vacuum(retention.hours)
        counted = _count_gone(done, before, _find_data(table))
        return replace(counted, before_ms=before_ms)

    def _sql(self, statement: str) -> DataFrame:
        return self.session.sql(statement)

    @contextmanager
    def _set(self, conf: Mapping[str, str]) -> Iterator[None]:
        before = {key: self.session.conf.get(key, None) for key in conf}
        for key, value in conf.items():
            self.session.conf.set(key, value)
        try:
            yield
        finally:
            for key, known in before.items():
                if known is None:
                    self.session.conf.unset(key)
                else:
                    self.session.conf.set(key, known)

    def tell(self, told: str) -> None:
        """Say what is going on, for the log of the task."""
        print(f"tidegate: {self.pipeline.name} {told}", flush=True)


def _quote(table: OwnedTable) -> str:
    return f"delta.`{table.url.replace('`', '``')}`"


def _find_data(table: OwnedTable) -> dict[str, int]:
    """Find the files of a table, without its log and the tables that it has inside."""
    others = tuple(f"{name}/" for name in ("_delta_log", *SIDE_TABLES))
    files = find_files(table.log.table)
    return {path: size for path, size in files.items() if not path.startswith(others)}


def _count_gone(done: Done, before: dict[str, int], after: dict[str, int]) -> Done:
    """Count what is gone of a folder's files, whatever was added meanwhile."""
    gone = [size for path, size in before.items() if path not in after]
    return replace(done, files_removed=len(gone), bytes_removed=sum(gone))
