"""Taking up again what was put aside: what is to be taken, and what became of it.

    replays/<id>.json    in a pipeline's state folder, one for each replay
    replays/lease/       who carries one out

A replay reads one version of the quarantine table, whatever is put aside meanwhile. It is written down
before it begins, so that one whose driver was killed is gone on with and no row is written twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self

from pydantic import Field, TypeAdapter, ValidationError
from upath import UPath

from tidegate.core.backfill.book import Backfills
from tidegate.core.errors import LedgerError, ReplayError
from tidegate.core.lease import LeaseFolder, hold_lease
from tidegate.core.quarantine import Choice, count_quarantine
from tidegate.core.settings import Settings
from tidegate.core.spec.base import Moment, Name, SpecModel, tell_error
from tidegate.core.spec.pipeline import OutputMode, Pipeline
from tidegate.core.storage import list_names, read_json, write_json

_PREFIX = "replay__"


@dataclass(frozen=True)
class Replay:
    """Some of what was put aside, to be written after all."""

    id: str
    version: int
    """The version of the quarantine table that is read."""
    choice: Choice
    rows: int
    result: ReplayResult | None = None
    """None until it is finished."""

    @property
    def begun_at(self) -> str:
        """When it began."""
        return self.id.removeprefix(_PREFIX)


@dataclass(frozen=True)
class ReplayResult:
    """What became of the rows of a replay."""

    written: dict[str, int | None]
    """Rows by sink; None where a sink does not tell."""
    put_aside: int
    """How many failed once more."""

    def describe(self) -> Iterator[str]:
        """Say what became of the rows."""
        for sink, rows in self.written.items():
            yield f"{sink}: took its rows" if rows is None else f"{sink}: {rows:,} rows"
        yield f"{self.put_aside:,} rows failed again and were put aside again"


class ReplayRequest(SpecModel):
    """A replay as it is asked for by a form or the API."""

    pipeline: Name = Field(description="Whose rows are taken up again.")
    rule: str | None = Field(default=None, description="Only what this rule put aside.")
    run: str | None = Field(default=None, description="Only what this run put aside.")
    since: Moment | None = Field(default=None, description="Only what was put aside since.")
    until: Moment | None = Field(default=None, description="Only what was put aside before.")

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """Parse what was asked for, telling all mistakes at once."""
        filled = {key: value for key, value in given.items() if value not in (None, "")}
        try:
            return cls.model_validate(filled)
        except ValidationError as error:
            told = "; ".join(tell_error(detail) for detail in error.errors())
            raise ReplayError(f"The replay is refused: {told}.") from None

    @property
    def choice(self) -> Choice:
        """Which rows are meant."""
        return Choice(self.rule, self.run, self.since, self.until)


_REPLAY: TypeAdapter[Replay] = TypeAdapter(Replay)


@dataclass(frozen=True)
class Replays:
    """The replays of one pipeline."""

    pipeline: Pipeline
    settings: Settings

    def begin(self, choice: Choice) -> Replay | None:
        """Write down what is to be taken up, or find what was not finished; None for nothing."""
        # Of two that begin at once, the second must find what the first wrote down.
        begin = LeaseFolder(self._folder / "begin")
        with hold_lease(begin, "the beginning of a replay", seconds=self.settings.lease_seconds):
            return self._begin(choice)

    def _begin(self, choice: Choice) -> Replay | None:
        unfinished = self._find_unfinished()
        if unfinished:
            if choice not in (Choice(), unfinished.choice):
                raise ReplayError(
                    f"The replay {unfinished.id} was not finished, and it was to take "
                    f"{unfinished.choice.describe()}.",
                    remedy="Run the command without options to go on with it; then run this again.",
                )
            return unfinished
        self._refuse_whole_results()
        self._refuse_files()
        found = count_quarantine(self.pipeline, self.settings, choice)
        if found is None or not found.rows:
            return None
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        replay = Replay(f"{_PREFIX}{now}", found.version, choice, found.rows)
        self._write(replay)
        return replay

    def read(self, replay_id: str) -> Replay:
        """Read a replay that was begun."""
        value = read_json(self._file(replay_id))
        if value is None:
            raise ReplayError(
                f"{self.pipeline.name} has no replay {replay_id!r}.",
                remedy="Begin one by 'tidegate quarantine replay'.",
            )
        try:
            return _REPLAY.validate_python(value)
        except ValidationError as error:
            raise LedgerError(
                f"The file {self._file(replay_id)} is broken: {error}.",
                remedy="Restore it from a backup. Deleting it forgets what the replay has written.",
            ) from error

    @property
    def lease(self) -> LeaseFolder:
        """Who carries a replay out, so that no two do."""
        return LeaseFolder(self._folder / "lease")

    def refuse_backfill(self) -> None:
        """Refuse to take rows up that a backfill judges anew right now."""
        running = Backfills(self.pipeline, self.settings).find_running()
        if running:
            raise ReplayError(
                f"{running} is at work, and rows that both bring would be there twice.",
                remedy="Wait until it has ended.",
            )

    def list_ids(self) -> list[str]:
        """List all replays by their ids, the newest last."""
        names = (name for name in list_names(self._folder) if name.startswith(_PREFIX))
        return sorted(name.removesuffix(".json") for name in names)

    def forget(self, replay: Replay) -> None:
        """Delete what is written down of a replay."""
        self._file(replay.id).unlink(missing_ok=True)

    def finish(self, replay: Replay, result: ReplayResult) -> None:
        """Write down what became of a replay."""
        self._write(replace(replay, result=result))

    def _find_unfinished(self) -> Replay | None:
        ids = self.list_ids()
        if not ids:
            return None
        newest = self.read(ids[-1])
        return None if newest.result else newest

    def _refuse_whole_results(self) -> None:
        if self.pipeline.output_mode is OutputMode.COMPLETE:
            raise ReplayError(
                f"{self.pipeline.name} writes all results with each batch, and some of them alone "
                "would take the place of all.",
                remedy="Run the pipeline: its next batch gives them again.",
            )

    def _refuse_files(self) -> None:
        if self.pipeline.files_sinks:
            raise ReplayError(
                f"{self.pipeline.name} writes to files by Spark's own sink, which takes the batches "
                "of its query alone.",
                remedy="Read the rows by 'tidegate quarantine show --json', and land them again.",
            )

    def _write(self, replay: Replay) -> None:
        write_json(self._file(replay.id), _REPLAY.dump_python(replay, mode="json"))

    def _file(self, replay_id: str) -> UPath:
        return self._folder / f"{replay_id}.json"

    @property
    def _folder(self) -> UPath:
        return self.settings.state_of(self.pipeline.name) / "replays"
