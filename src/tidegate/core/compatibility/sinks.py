"""What a spec writes, against what the last run wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.core.compatibility.verdict import Difference, Verdict
from tidegate.core.shape import Shape, Traits

_REBUILD = (
    "Give the pipeline a new name and a new table, and read its source anew. Or keep both as they "
    "were."
)
_PLACES = ("connection", "table", "path", "topic", "format", "function")
_KNOWN_BY = {
    "keys": "The rows that the table has are known by the old keys, so a row of the same new key "
    "would be added beside them, or take the place of several.",
    "sequence": "The rows that the table has carry the old order, so it could not be told which of two "
    "rows is the newer one.",
    "route_by": "The rows that were written stay in the tables that the old column named.",
}
_HISTORY = ("valid_from", "valid_to", "current")


@dataclass(frozen=True)
class SinkComparison:
    """Holds the sinks of a spec against those of its last run."""

    before: Mapping[str, Traits]
    now: Mapping[str, Traits]
    is_pending: bool
    """Whether a batch was planned and not committed, so that some sinks may hold it."""

    def find_differences(self) -> Iterator[Difference]:
        """Find what is written differently."""
        renamed = dict(self._find_renamed())
        for old, new in renamed.items():
            yield self._judge_renaming(old, new)
        for name in self.now:
            if name in self.before:
                yield from self._compare(name, self.before[name], self.now[name])
            elif name not in renamed.values():
                yield Difference(
                    "sink_added",
                    Verdict.COMPATIBLE,
                    f"The sink {name} is new: it gets rows from now on, none of those before.",
                )
        for name in self.before:
            if name not in self.now and name not in renamed:
                yield Difference(
                    "sink_removed", Verdict.COMPATIBLE, f"The sink {name} gets no more rows."
                )

    def _find_renamed(self) -> Iterator[tuple[str, str]]:
        for old in self.before.keys() - self.now.keys():
            for new in self.now.keys() - self.before.keys():
                if _place(self.before[old]) == _place(self.now[new]):
                    yield old, new

    def _judge_renaming(self, old: str, new: str) -> Difference:
        told = f"The sink {old} is named {new} now, and its place knows batches by the old name."
        if not self.is_pending:
            return Difference("sink_renamed", Verdict.COMPATIBLE, told)
        return Difference(
            "sink_renamed",
            Verdict.MIGRATE,
            f"{told} A batch is pending, and would be written twice if the sink holds it already.",
            "Run the pipeline as it was until it is idle, and then deploy the new name.",
        )

    def _compare(self, name: str, before: Traits, now: Traits) -> Iterator[Difference]:
        moved = [trait for trait in _PLACES if before.get(trait) != now.get(trait)]
        if before["type"] != now["type"] or moved:
            yield self._judge_move(name, before, now)
            return
        if before.get("mode") != now.get("mode"):
            yield _judge_mode(name, before, now)
            return
        for trait, consequence in _KNOWN_BY.items():
            if before.get(trait) != now.get(trait):
                told = f"The sink {name} had {_spell(trait, before)}, and has {_spell(trait, now)}."
                yield Difference(
                    f"sink_{trait}_changed", Verdict.FRESH, f"{told} {consequence}", _REBUILD
                )
        columns = [trait for trait in _HISTORY if before.get(trait) != now.get(trait)]
        if columns:
            yield Difference(
                "sink_history_changed",
                Verdict.MIGRATE,
                f"The sink {name} names the columns of its history differently: "
                f"{', '.join(columns)}. The table has the old ones.",
                "Rename the table's columns before the next run, or keep the names.",
            )

    def _judge_move(self, name: str, before: Traits, now: Traits) -> Difference:
        return Difference(
            "sink_moved",
            Verdict.MIGRATE,
            f"The sink {name} was {_spell_place(before)}, and is {_spell_place(now)}. The new place "
            "holds none of the batches that are committed, and would get only later ones.",
            "Move the old one's whole folder there before the next run, if it is a Delta table. To have "
            "an empty one filled from now on, give the sink a new name. To have all rows in it, give "
            "the pipeline a new name.",
        )


def _judge_mode(name: str, before: Traits, now: Traits) -> Difference:
    told = f"The sink {name} had {_spell('mode', before)}, and has {_spell('mode', now)}."
    if (before.get("mode"), now.get("mode")) == ("append", "upsert"):
        return Difference(
            "sink_mode_changed",
            Verdict.MIGRATE,
            f"{told} Where the table has several rows of a key, each of them would be updated.",
            "Leave one row of each key in the table before the next run.",
        )
    if (before.get("mode"), now.get("mode")) == ("upsert", "append"):
        return Difference(
            "sink_mode_changed",
            Verdict.COMPATIBLE,
            f"{told} From now on, rows are added beside those of the same key.",
        )
    return Difference(
        "sink_mode_changed",
        Verdict.FRESH,
        f"{told} The table has no history of that kind, or one that would be lost.",
        _REBUILD,
    )


def _place(traits: Traits) -> list[Any]:
    return [traits["type"], *(traits.get(trait) for trait in _PLACES)]


def _spell_place(traits: Traits) -> str:
    return " ".join(str(part) for part in _place(traits) if part)


def _spell(trait: str, traits: Traits) -> str:
    value = traits.get(trait)
    told = ", ".join(value) if isinstance(value, list) else value
    return f"{trait.replace('_', ' ')} {told}" if told else f"no {trait.replace('_', ' ')}"


def find_renamed_pipeline(
    name: str, sinks: Mapping[str, Traits], orphans: Mapping[str, Shape]
) -> Iterator[Difference]:
    """Find checkpoints that no spec names any more, of a pipeline that wrote to the same places."""
    places = [_place(traits) for traits in sinks.values()]
    for checkpoint, shape in orphans.items():
        shared = next((t for t in shape.sinks.values() if _place(t) in places), None)
        if shared:
            yield Difference(
                "pipeline_renamed",
                Verdict.MIGRATE,
                f"{name} has no checkpoint, and {_spell_place(shared)} was written by a pipeline that "
                f"no spec names any more, with the checkpoint {checkpoint}. Read anew, its rows would "
                "be there twice.",
                "If the pipeline was renamed, take its checkpoint along: tidegate checkpoint move "
                f"{checkpoint} {name}. If it is another one, give it a table of its own, or delete "
                "the old one's state.",
            )
