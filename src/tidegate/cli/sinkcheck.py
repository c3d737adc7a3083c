"""What must be known of sinks before a query is set back."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from tidegate.cli.place import Place
from tidegate.core.checkpoint.belongings import find_belongings
from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.errors import SurgeryError
from tidegate.core.ledger import Baseline, Ledger, rank_batch
from tidegate.core.surgery.backup import Manifest
from tidegate.core.surgery.rewind import Rewind
from tidegate.core.surgery.sinks import ReturnGuard, SinkGuard


@dataclass(frozen=True)
class SinkCheck:
    """Asks the sinks of a pipeline, or has somebody vouch for those of a path."""

    place: Place
    accepts_duplicates: bool
    are_checked: bool

    def check_rewind(self, step: Rewind) -> None:
        """Refuse to set a query back where a sink would lose or double rows."""
        query_id = read_progress(self.place.checkpoint).query_id
        if query_id:
            self._check(query_id, step.batch, renews=step.new_query_id is not None)

    def check_return(self, backup: Manifest, *, renews: bool) -> None:
        """Refuse a backup where a sink would lose or double rows."""
        progress = read_progress(self.place.checkpoint)
        now = (progress.query_id, progress.committed_batch, progress.planned_batch)
        then = Baseline(backup.query_id, backup.committed_batch)
        if progress.is_readable and now == (*astuple(then), backup.planned_batch):
            return
        # What a broken checkpoint does not tell, its ledger or its backup does.
        known = Ledger.beside(find_belongings(self.place.checkpoint)).find_latest()
        left = known.left_at.query_id if known else None
        query_id = progress.query_id or left or then.query_id
        if query_id is None or then.query_id is None:
            return  # nothing was ever run
        if query_id != then.query_id and not renews:
            self._require_pipeline()
            if self.place.pipeline:
                ReturnGuard(
                    *(self.place.pipeline, self.place.settings, query_id, then, self.are_checked)
                ).check()
        self._check(then.query_id, rank_batch(then.committed_batch), renews=renews)

    def _check(self, query_id: str, batch: int, *, renews: bool) -> None:
        self._require_pipeline()
        if self.place.pipeline:
            SinkGuard(
                *(self.place.pipeline, self.place.settings, query_id, batch, renews),
                self.accepts_duplicates,
                self.are_checked,
            ).check()

    def _require_pipeline(self) -> None:
        if self.place.pipeline is None and not self.are_checked:
            raise SurgeryError(
                "A path does not tell what the query writes to, and a sink that knows its batches "
                "would pass over them without a word.",
                remedy="Name the pipeline instead; or, once you have checked, say "
                "--sinks-are-checked.",
            )
