"""A line in the log now and then, while a run goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark import SparkContext
from upath import UPath

from tidegate.core.advance import describe_advance, measure_advance
from tidegate.core.checkpoint.progress import Progress, read_progress
from tidegate.core.duration import spell_seconds
from tidegate.core.target import Target

EVERY_SECONDS = 30.0
_LAST_SECONDS = 1.0
"""How long the end waits for a line that is about to be told."""


@dataclass(frozen=True)
class ProgressLine:
    """Says how far a run is: what is committed of its target, and the tasks of the batch at hand."""

    target: Target | None
    start: Progress
    """Where the run began."""
    checkpoint: UPath
    began: float = field(default_factory=time.monotonic)

    def describe(self) -> str:
        """Say how far the run is, by the commit log and by Spark's stages."""
        now = read_progress(self.checkpoint)
        elapsed = time.monotonic() - self.began
        advances = measure_advance(self.target, self.start, now, self.checkpoint)
        told = [f"{spell_seconds(elapsed)} so far", describe_advance(advances, elapsed)]
        if now.planned_batch is not None and now.planned_batch != now.committed_batch:
            told.append(f"batch {now.planned_batch} is under way{self._describe_tasks()}")
        return ", ".join(filter(None, told))

    @staticmethod
    def _describe_tasks() -> str:
        context = SparkContext._active_spark_context  # noqa: SLF001  # getOrCreate might create one
        if context is None:
            return ""
        tracker = context.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        counts = [(stage.numCompletedTasks, stage.numTasks) for stage in stages if stage]
        if not counts:
            return ""
        done, total = map(sum, zip(*counts, strict=True))
        return f" with {done:,} of {total:,} tasks done"


@contextmanager
def tell_now_and_then(what: str, describe: Callable[[], str]) -> Iterator[None]:
    """Print a line now and then for as long as something goes on; a short one prints none."""
    done = threading.Event()

    def tell() -> None:
        while not done.wait(EVERY_SECONDS):
            try:
                print(f"tidegate: {what}: {describe()}", flush=True)
            except Exception as error:
                # It only informs, and must never be what a run fails by.
                print(f"tidegate: {what}: no progress can be told: {error}", flush=True)

    teller = threading.Thread(target=tell, name="tidegate-progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join(_LAST_SECONDS)
