"""Where topics begin and end right now, asked without a JVM."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from tidegate.core.connection import KafkaConnection
from tidegate.core.errors import BlockedError, ConnectionSpecError, SourceAwayError
from tidegate.core.spec.kafka import Isolation, KafkaSource

Offsets = Mapping[str, Mapping[str, int]]
"""Offsets by topic and partition, as Spark writes them."""

_TIMEOUT_SECONDS = 15.0
_QUIET = {"log_level": "0"}
_LOOK_SECONDS = 0.2
_FINAL = frozenset({"_AUTHENTICATION"})
_REFUSALS = _FINAL | {"_SSL"}  # which a broker that is just starting may cause, too
_UNSETTLED = frozenset({KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})
_ISOLATION = {
    Isolation.READ_COMMITTED: IsolationLevel.READ_COMMITTED,
    Isolation.READ_UNCOMMITTED: IsolationLevel.READ_UNCOMMITTED,
}


@dataclass(frozen=True)
class TopicEnds:
    """Where each partition begins and ends."""

    ids: Mapping[str, str]
    """The id that each topic was given when it was created."""
    beginnings: Offsets
    ends: Offsets

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return sum(len(partitions) for partitions in self.ends.values())


class _UnsettledError(Exception):
    """A partition has no leader that is known, for the moment."""

    def __init__(self, reason: KafkaException) -> None:
        self.reason = reason
        super().__init__(str(reason))


class KafkaEnds:
    """Asks a cluster about a source's topics."""

    def __init__(self, connection: KafkaConnection) -> None:
        self._connection = connection
        self._heard: list[KafkaError] = []
        options: dict[str, Any] = {**connection.to_librdkafka(), **_QUIET}
        options["error_cb"] = self._heard.append
        self._admin = self._open(options)

    def _open(self, options: dict[str, Any]) -> AdminClient:
        self._connection.check_files()
        try:
            return AdminClient(options)
        except KafkaException as error:
            told = error.args[0].str().removeprefix("Failed to create admin client: ")
            raise ConnectionSpecError(
                f"The connection {self._connection.name!r} cannot be used: its client refuses it "
                f"({told}).",
                remedy="Correct its certificates, its key or the key's password; files must be PEM.",
            ) from error

    def read(self, source: KafkaSource) -> TopicEnds:
        """Find where the source's partitions begin, and end by its isolation."""
        described = self._describe(self._list_topics(source))
        if source.topic_pattern:
            described = {topic: d for topic, d in described.items() if not d.is_internal}
            _require_match(source, described)
        partitions = [
            Partition(topic, number)
            for topic, description in described.items()
            for number in self._choose_partitions(source, topic, description)
        ]
        isolation = _ISOLATION[source.isolation]
        return TopicEnds(
            ids={topic: str(found.topic_id) for topic, found in described.items()},
            beginnings=self._list_offsets(partitions, OffsetSpec.earliest(), isolation),  # type: ignore[no-untyped-call]
            ends=self._list_offsets(partitions, OffsetSpec.latest(), isolation),  # type: ignore[no-untyped-call]
        )

    def read_topic_id(self, topic: str) -> str:
        """Find the id that a topic was given when it was created."""
        return str(self._describe([topic])[topic].topic_id)

    def read_topic_beginnings(self, topic: str) -> Mapping[str, int]:
        """Find where a topic's partitions begin."""
        return self._list_edges(topic, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def read_topic_ends(self, topic: str) -> Mapping[str, int]:
        """Find where a topic's partitions end, whatever is open in them."""
        return self._list_edges(topic, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def _list_edges(self, topic: str, spec: OffsetSpec) -> Mapping[str, int]:
        (found,) = self._describe([topic]).values()
        partitions = [Partition(topic, partition.id) for partition in found.partitions]
        return self._list_offsets(partitions, spec, IsolationLevel.READ_UNCOMMITTED)[topic]

    def find_offsets_at(self, source: KafkaSource, ends: TopicEnds, at: datetime) -> Offsets:
        """Find the first offset of a time or later; the end where there is none."""
        partitions = [
            Partition(topic, int(number)) for topic in ends.ends for number in ends.ends[topic]
        ]
        spec = OffsetSpec.for_timestamp(int(at.timestamp() * 1000))
        found = self._list_offsets(partitions, spec, _ISOLATION[source.isolation])
        return {
            topic: {
                number: ends.ends[topic][number] if offset < 0 else offset
                for number, offset in numbers.items()
            }
            for topic, numbers in found.items()
        }

    def read_retention(self, topics: Iterable[str]) -> dict[str, int | None]:
        """Find how long each topic keeps its records, in milliseconds; None is for ever."""
        asked = self._admin.describe_configs(
            [ConfigResource(ResourceType.TOPIC, topic) for topic in topics],
            request_timeout=_TIMEOUT_SECONDS,
        )
        found: dict[str, int | None] = {}
        for resource, future in asked.items():
            config = self._await(future)
            retention_ms = int(config["retention.ms"].value)
            expires = "delete" in config["cleanup.policy"].value and retention_ms >= 0
            # Where a topic is cut by its size too, nobody can say when.
            is_by_size = int(config["retention.bytes"].value) >= 0
            found[resource.name] = retention_ms if expires and not is_by_size else None
        return found

    def _list_topics(self, source: KafkaSource) -> list[str]:
        if source.topics:
            return list(source.topics)
        if source.partitions:
            return list(source.partitions)
        pattern = re.compile(source.topic_pattern or "")
        try:
            known = self._admin.list_topics(timeout=_TIMEOUT_SECONDS).topics
        except KafkaException as error:
            raise self._explain(error) from error
        matching = sorted(name for name in known if pattern.search(name))
        _require_match(source, matching)
        return matching

    def _describe(self, topics: Iterable[str]) -> dict[str, Any]:
        topics = list(topics)
        found = self._admin.describe_topics(
            TopicCollection(topics), request_timeout=_TIMEOUT_SECONDS
        )
        described, gone = {}, []
        for topic, future in found.items():
            description = self._await(future, passes=KafkaError.UNKNOWN_TOPIC_OR_PART)
            if description is None:
                gone.append(topic)
            else:
                described[topic] = description
        if gone:
            raise BlockedError(
                f"The topic {', '.join(gone)} does not exist.",
                code="topic_gone",
                cause="It was deleted or renamed, or it was never created.",
                remedy="Create it, or correct source.topics in the spec.",
            )
        return described

    @staticmethod
    def _choose_partitions(source: KafkaSource, topic: str, description: Any) -> list[int]:
        known = {partition.id for partition in description.partitions}
        if not source.partitions:
            return sorted(known)
        wanted = set(source.partitions[topic])
        if wanted - known:
            raise BlockedError(
                f"The topic {topic} has no partition {', '.join(map(str, sorted(wanted - known)))}.",
                code="partition_gone",
                cause=f"It has {len(known)}, from 0 on.",
                remedy="Correct source.partitions in the spec.",
            )
        return sorted(wanted)

    def _list_offsets(
        self, partitions: list[Any], spec: OffsetSpec, isolation: IsolationLevel
    ) -> dict[str, dict[str, int]]:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while True:
            try:
                return self._ask_for_offsets(partitions, spec, isolation)
            except _UnsettledError as error:
                # A topic that was just created, or a broker that just left: ask for its leader anew.
                if time.monotonic() > deadline:
                    raise self._explain(error.reason) from error
                self._admin.list_topics(timeout=_TIMEOUT_SECONDS)

    def _ask_for_offsets(
        self, partitions: list[Any], spec: OffsetSpec, isolation: IsolationLevel
    ) -> dict[str, dict[str, int]]:
        asked: Mapping[Any, Future[Any]] = self._admin.list_offsets(
            dict.fromkeys(partitions, spec),
            isolation_level=isolation,
            request_timeout=_TIMEOUT_SECONDS,
        )
        offsets: dict[str, dict[str, int]] = {}
        for partition, future in asked.items():
            offset = self._await(future).offset
            offsets.setdefault(partition.topic, {})[str(partition.partition)] = offset
        return offsets

    def _await(self, future: Future[Any], passes: int | None = None) -> Any:
        """Wait for an answer; None for an error that the caller has words for."""
        while True:
            try:
                return future.result(timeout=_LOOK_SECONDS)
            except TimeoutError:
                # The request itself would only time out; that a password is wrong is heard before.
                refusal = self._find_refusal(_FINAL)
                if refusal:
                    raise refusal from None
            except KafkaException as error:
                if error.args[0].code() == passes:
                    return None
                if error.args[0].code() in _UNSETTLED:
                    raise _UnsettledError(error) from error
                raise self._explain(error) from error

    def _find_refusal(self, kinds: frozenset[str]) -> BlockedError | None:
        self._admin.poll(0)
        refused = next((heard for heard in self._heard if heard.name() in kinds), None)
        if refused is None:
            return None
        name, servers = self._connection.name, self._connection.options["bootstrap.servers"]
        return BlockedError(
            f"The cluster of the connection {name!r} refuses it ({servers}): {refused.str()}.",
            code="login_refused",
            remedy="Correct user, password, mechanism or certificates of the connection.",
        )

    def _explain(self, error: KafkaException) -> Exception:
        # A request only times out; what went wrong is heard from the connection below it.
        refusal = self._find_refusal(_REFUSALS)
        if refusal:
            return refusal
        reason = error.args[0]
        name, servers = self._connection.name, self._connection.options["bootstrap.servers"]
        if reason.retriable() or reason.code() < 0 or reason.code() in _UNSETTLED:
            heard = f" ({self._heard[-1].str()})" if self._heard else ""
            return SourceAwayError(
                f"No broker of the connection {name!r} answers ({servers}).",
                cause=f"{reason.str()}{heard}.",
                remedy="Start the cluster, or correct the connection; then run again.",
            )
        return BlockedError(
            f"The cluster of the connection {name!r} refuses: {reason.str()}.",
            code="access_refused",
            remedy="Give its user the right to describe and read the topics.",
        )


def _require_match(source: KafkaSource, found: Collection[str]) -> None:
    if not found:
        raise BlockedError(
            f"No topic matches {source.topic_pattern!r}.",
            code="topic_gone",
            cause="The cluster has none of such a name; Kafka's internal ones do not count.",
            remedy="Create one, or correct source.topic_pattern in the spec.",
        )
