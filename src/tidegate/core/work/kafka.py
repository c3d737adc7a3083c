"""New records in Kafka, and what keeps them from being read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from upath import UPath

from tidegate.core.checkpoint.log import find_commit_time
from tidegate.core.checkpoint.progress import Progress
from tidegate.core.connection import KafkaConnection
from tidegate.core.ends.kafka import KafkaEnds, Offsets, TopicEnds
from tidegate.core.errors import BlockedError
from tidegate.core.spec.base import format_duration
from tidegate.core.spec.kafka import KafkaSource, Starting
from tidegate.core.target import KafkaTarget
from tidegate.core.waiting import Unit, Waiting
from tidegate.core.work.finding import Finding, mention_pending


@dataclass(frozen=True)
class Position:
    """Where a source is read from next, and how far there is to go."""

    ends: TopicEnds
    committed: Offsets | None
    """None before the first commit."""
    start: Offsets
    """Of every partition: what is committed, or where the first run begins."""

    @property
    def waiting(self) -> int:
        """How many records wait, those that expired left out."""
        return sum(
            max(0, end - max(self.start[topic][number], self.ends.beginnings[topic][number]))
            for topic, number, end in _each(self.ends.ends)
        )


@dataclass(frozen=True)
class KafkaWork:
    """A Kafka source as a run would find it."""

    pipeline: str
    name: str
    source: KafkaSource
    connection: KafkaConnection
    progress: Progress
    checkpoint: UPath
    known_ids: Mapping[str, str]
    accepts_loss: bool = False

    def find(self) -> Finding:
        """Find the records that wait."""
        position = self.locate(KafkaEnds(self.connection))
        ends, waiting = position.ends, position.waiting
        is_first = position.committed is None
        told = {self.name: Waiting(Unit.RECORDS, waiting)}
        warning = None if is_first else self._judge_expired(position.start, ends)
        finding = Finding(
            f"{waiting:,} records wait in {ends.partitions} partitions"
            f"{mention_pending(self.progress)}",
            KafkaTarget(ends.ends, self.name),
            warning,
            ends.ids,
            told,
        )
        # Records that expired are given up by a run that takes its position after them.
        if waiting == 0 and not warning and not self._must_take_position(position):
            reason = f"no new records in {ends.partitions} partitions"
            return Finding(reason, None, warning, ends.ids, told)
        too_few = self._find_too_few(waiting)
        return Finding(too_few, None, warning, ends.ids, told) if too_few else finding

    def locate(self, cluster: KafkaEnds) -> Position:
        """Find where the source is read from next; refuse topics that are not the same any more."""
        ends = cluster.read(self.source)
        committed: Offsets | None = self.progress.find_committed(self.name)
        if committed is None:
            return Position(ends, None, self._find_start(cluster, ends))
        self._refuse_another_topic(committed, ends)
        return Position(ends, committed, _place_new_partitions(committed, ends))

    def _must_take_position(self, position: Position) -> bool:
        # Until a first run took 'latest' down, every later run would begin later.
        return position.committed is None and self.source.starting is Starting.LATEST

    def _find_start(self, cluster: KafkaEnds, ends: TopicEnds) -> Offsets:
        source = self.source
        if source.starting_timestamp:
            return cluster.find_offsets_at(source, ends, source.starting_timestamp)
        if source.starting is Starting.LATEST:
            return ends.ends
        if source.starting_offsets:
            return self._check_starting_offsets(ends)
        return ends.beginnings

    def _check_starting_offsets(self, ends: TopicEnds) -> Offsets:
        start = {topic: dict(numbers) for topic, numbers in ends.beginnings.items()}
        problems = []
        for topic, numbers in (self.source.starting_offsets or {}).items():
            for number, offset in numbers.items():
                beginning = ends.beginnings.get(topic, {}).get(str(number))
                if beginning is None:
                    problems.append(f"there is no {topic}-{number}")
                elif not beginning <= offset <= ends.ends[topic][str(number)]:
                    end = ends.ends[topic][str(number)]
                    problems.append(
                        f"{topic}-{number} has {beginning:,} to {end:,}, not {offset:,}"
                    )
                else:
                    start[topic][str(number)] = offset
        if problems:
            raise BlockedError(
                f"The first run cannot start at starting_offsets: {'; '.join(problems)}.",
                code="starting_offsets",
                remedy="Correct starting_offsets in the spec.",
            )
        return start

    def _find_too_few(self, waiting: int) -> str | None:
        wanted, delay = self.source.min_offsets_per_trigger, self.source.max_trigger_delay
        batch = self.progress.committed_batch
        if wanted is None or delay is None or batch is None or waiting >= wanted:
            return None
        if self.progress.planned_batch != batch:
            return None
        committed_at = find_commit_time(self.checkpoint, batch)
        if committed_at is None or datetime.now(UTC) - committed_at >= delay:
            return None
        return (
            f"{waiting:,} records wait, fewer than {wanted:,}; a run starts {format_duration(delay)} "
            "after the last commit in any case"
        )

    def _refuse_another_topic(self, committed: Offsets, ends: TopicEnds) -> None:
        """Refuse topics whose offsets no longer mean what the checkpoint means by them."""
        problems = [*self._find_other_ids(ends), *self._find_missing(committed, ends)]
        problems += [
            f"{topic}-{number} ends at {ends.ends[topic][number]:,}, before the committed {offset:,}"
            for topic, number, offset in _each(committed)
            if ends.ends.get(topic, {}).get(number, offset) < offset
        ]
        if problems:
            raise BlockedError(
                f"The topics are not the ones that the checkpoint was reading: "
                f"{'; '.join(problems)}.",
                code="topic_recreated",
                cause="A topic was deleted and created anew, it or a partition was taken out of the "
                "spec, the connection leads to another cluster, or isolation became read_committed "
                "while a transaction is open; records would be left out without a word.",
                remedy="Correct the spec or the connection. To read the new topic from its start, give "
                "the pipeline a new name and a new table.",
            )

    def _find_other_ids(self, ends: TopicEnds) -> Iterator[str]:
        for topic, known in self.known_ids.items():
            found = ends.ids.get(topic)
            if found is not None and found != known:
                yield f"{topic} has id {found}, not {known}"

    def _find_missing(self, committed: Offsets, ends: TopicEnds) -> Iterator[str]:
        for topic, numbers in committed.items():
            found = ends.ends.get(topic)
            missing = set(numbers) - set(found or ())
            if found is None:
                yield f"{topic} is gone or no longer in the spec"
            elif missing and self.source.partitions:
                told = ", ".join(sorted(missing, key=int))
                yield f"source.partitions leaves out partition {told} of {topic}, which was read"
            elif missing:
                yield f"{topic} has {len(found)} partitions, it had {len(numbers)}"

    def _judge_expired(self, start: Offsets, ends: TopicEnds) -> str | None:
        """Refuse to go on where records expired before they were read, unless that is accepted."""
        expired = {
            f"{topic}-{number}": ends.beginnings[topic][number] - offset
            for topic, number, offset in _each(start)
            if topic in ends.beginnings and offset < ends.beginnings[topic].get(number, 0)
        }
        if not expired:
            return None
        lost = ", ".join(f"{partition} {count:,}" for partition, count in expired.items())
        batch = self.progress.committed_batch
        committed_at = find_commit_time(self.checkpoint, batch) if batch is not None else None
        since = f"{committed_at:%Y-%m-%d %H:%M:%S} UTC" if committed_at else "an unknown time"
        fact = (
            f"{sum(expired.values()):,} records expired before they were read, in "
            f"{len(expired)} of {ends.partitions} partitions ({lost}). The last commit was at {since}."
        )
        if self.accepts_loss or not self.source.fail_on_data_loss:
            return f"{fact} They are lost, and the run goes on after them, as was accepted."
        raise BlockedError(
            fact,
            code="records_expired",
            cause="They were deleted, by the topic's retention (of time or size) or by hand; a topic "
            "that the pipeline has not read yet counts from 0.",
            remedy="Either give them up and read on: "
            f"tidegate run {self.pipeline} --accept-data-loss, or in Airflow: airflow dags trigger "
            f"{self.pipeline} --conf '{{\"accept_data_loss\": true}}'. Or read all that is left "
            "into a new table: give the pipeline a new name and a new table. Then lengthen "
            "retention.ms of the topic, or run more often.",
        )


def _each(offsets: Offsets) -> Iterator[tuple[str, str, int]]:
    for topic, numbers in offsets.items():
        for number, offset in numbers.items():
            yield topic, number, offset


def _place_new_partitions(committed: Offsets, ends: TopicEnds) -> Offsets:
    """Start partitions that were added since at 0, as Spark does."""
    return {
        topic: {number: committed.get(topic, {}).get(number, 0) for number in numbers}
        for topic, numbers in ends.ends.items()
    }
