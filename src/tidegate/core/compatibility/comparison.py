"""A spec against the checkpoint that it would go on from, as far as can be told without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from tidegate.core.checkpoint.log import read_batch_offsets
from tidegate.core.checkpoint.progress import Progress, State, read_progress
from tidegate.core.checkpoint.statelog import is_stateful
from tidegate.core.compatibility.sinks import SinkComparison, find_renamed_pipeline
from tidegate.core.compatibility.sources import SourceComparison
from tidegate.core.compatibility.verdict import Compatibility, Difference, Verdict
from tidegate.core.errors import CheckpointError
from tidegate.core.ledger import Ledger
from tidegate.core.settings import Settings
from tidegate.core.shape import Shape
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.storage import list_names, open_path


@dataclass(frozen=True)
class Comparison:
    """Holds one spec against its checkpoint."""

    pipeline: Pipeline
    settings: Settings
    orphans: Mapping[str, Shape] = field(default_factory=dict)
    """What wrote the checkpoints that no spec names any more."""

    @cached_property
    def progress(self) -> Progress:
        """How far the checkpoint has got."""
        return read_progress(self.settings.checkpoint_of(self.pipeline.name))

    @cached_property
    def before(self) -> Shape | None:
        """What the last run had; None where nobody wrote it down."""
        return Ledger.beside(self.settings.state_of(self.pipeline.name)).read_shape()

    @cached_property
    def now(self) -> Shape:
        """What the next run would have."""
        return Shape.of(self.pipeline, self.settings.pipelines)

    @property
    def is_new(self) -> bool:
        """Whether there is no checkpoint to go on from."""
        return self.progress.is_readable and self.progress.planned_batch is None

    @property
    def needs_plan(self) -> bool:
        """Whether only Spark's own plan of the steps tells whether they fit the state."""
        if self.is_new or not self.progress.is_readable:
            return False
        is_same = self.before is not None and self.before.digest == self.now.digest
        return not is_same and bool(self.pipeline.transform or self._remembers)

    def conclude(self, of_plan: tuple[Difference, ...] = ()) -> Compatibility:
        """Put together what was found, and what Spark's plan told."""
        checkpoint = str(self.settings.checkpoint_of(self.pipeline.name))
        found = (*self._find_differences(), *of_plan)
        if self.is_new and not found:
            return Compatibility(self.pipeline.name, checkpoint, Verdict.NEW)
        return Compatibility.of(self.pipeline.name, checkpoint, found)

    def _find_differences(self) -> Iterator[Difference]:
        if not self.progress.is_readable:
            yield Difference(
                "checkpoint_damaged",
                Verdict.UNKNOWN,
                self.progress.problem or "The checkpoint cannot be read.",
                f"'tidegate checkpoint doctor {self.pipeline.name}' tells what to do.",
            )
            return
        if self.is_new:
            yield from find_renamed_pipeline(self.pipeline.name, self.now.sinks, self.orphans)
            return
        sources = SourceComparison(
            self.pipeline, self.settings, self.progress, self.before, self.now
        )
        yield from sources.find_differences()
        yield from self._compare_state()
        if self.before:
            yield from SinkComparison(
                self.before.sinks, self.now.sinks, self._is_pending
            ).find_differences()

    def _compare_state(self) -> Iterator[Difference]:
        if self._is_pending and self.before and self.before.digest != self.now.digest:
            yield Difference(
                "pending_batch",
                Verdict.COMPATIBLE,
                f"Batch {self.progress.planned_batch} was planned by the old spec and is not "
                "committed: the new one would write it.",
                "Let a run finish it before you deploy, if that matters.",
            )
        if not self._remembers:
            return
        if self.before and self.before.output_mode != self.now.output_mode:
            yield Difference(
                "output_mode_changed",
                Verdict.FRESH,
                f"output_mode was {self.before.output_mode}, and is {self.now.output_mode}: results "
                "that were given by the one are given again, or never, by the other.",
                "Give the pipeline a new name and a new table, and so a checkpoint of its own.",
            )
        yield from self._compare_settings()

    def _compare_settings(self) -> Iterator[Difference]:
        batch = self.progress.planned_batch
        checkpoint = self.settings.checkpoint_of(self.pipeline.name)
        planned = None if batch is None else read_batch_offsets(checkpoint, batch)
        for key, kept in (planned.conf if planned else {}).items():
            wanted = self.pipeline.spark.get(key)
            if wanted is not None and str(wanted) != str(kept):
                yield Difference(
                    "setting_kept",
                    Verdict.COMPATIBLE,
                    f"spark says {key}: {wanted}, which has no effect: a query that remembers keeps "
                    f"what its checkpoint began with, {kept}.",
                    "For the new value, give the pipeline a new name, and so a checkpoint of its own.",
                )

    @property
    def _is_pending(self) -> bool:
        return self.progress.state is State.PENDING

    @cached_property
    def _remembers(self) -> bool:
        try:
            return is_stateful(self.settings.checkpoint_of(self.pipeline.name))
        except CheckpointError:
            return True  # there is state; Spark says what is wrong with it


def find_orphans(settings: Settings, named: set[str]) -> dict[str, Shape]:
    """Find the checkpoints that no spec names, and what wrote them."""
    orphans = {}
    for name in sorted(set(list_names(open_path(settings.state))) - named):
        shape = Ledger.beside(settings.state_of(name)).read_shape()
        if shape:
            orphans[str(settings.checkpoint_of(name))] = shape
    return orphans
