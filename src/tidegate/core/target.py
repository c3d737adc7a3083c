"""Where a run must get to: taken before it starts, judged by the commit log afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter
from upath import UPath

from tidegate.core.checkpoint.filelog import read_file_log, strip_scheme
from tidegate.core.checkpoint.position import SourceKind
from tidegate.core.checkpoint.progress import Progress, State
from tidegate.core.errors import TargetMismatchError


@dataclass(frozen=True)
class FilesTarget:
    """Every one of these files is committed."""

    paths: tuple[str, ...]
    source: str = "0"
    since: int = -1
    """Only log offsets after this one count: a file that is read again was logged before."""
    kind: Literal["files"] = "files"

    def describe(self) -> str:
        """Say the target in a few words."""
        return f"{len(self.paths):,} files"


@dataclass(frozen=True)
class DeltaTarget:
    """Every row of this table version is committed."""

    version: int
    source: str = "0"
    last_index: int | None = None
    """The version's last file, where Spark stops at it instead of at the next version's start."""
    kind: Literal["delta"] = "delta"

    def describe(self) -> str:
        """Say the target in a few words."""
        return f"table version {self.version}"


@dataclass(frozen=True)
class KafkaTarget:
    """Every partition is committed up to, not including, its offset."""

    offsets: Mapping[str, Mapping[str, int]]
    source: str = "0"
    kind: Literal["kafka"] = "kafka"

    def describe(self) -> str:
        """Say the target in a few words."""
        partitions = sum(len(parts) for parts in self.offsets.values())
        return f"the end offsets of {partitions} partitions"


@dataclass(frozen=True)
class BatchTarget:
    """A batch of at least this id is committed; for sources whose end cannot be known."""

    batch_id: int
    kind: Literal["batch"] = "batch"

    def describe(self) -> str:
        """Say the target in a few words."""
        return f"batch {self.batch_id}"


@dataclass(frozen=True)
class DrainTarget:
    """The job itself says that it read all there was; for sources whose end only Spark knows."""

    source: str = "0"
    kind: Literal["drain"] = "drain"

    def describe(self) -> str:
        """Say the target in a few words."""
        return "the end that the job finds"


@dataclass(frozen=True)
class AllTargets:
    """Every one of these is reached; for queries of several sources."""

    targets: tuple[OneTarget, ...]
    kind: Literal["all"] = "all"

    def describe(self) -> str:
        """Say the target in a few words."""
        return ", ".join(target.describe() for target in self.targets)


OneTarget = Annotated[
    FilesTarget | DeltaTarget | KafkaTarget | BatchTarget | DrainTarget,
    Field(discriminator="kind"),
]
Target = Annotated[
    FilesTarget | DeltaTarget | KafkaTarget | BatchTarget | DrainTarget | AllTargets,
    Field(discriminator="kind"),
]
_ADAPTER: TypeAdapter[Target] = TypeAdapter(Target)


def parse_target(value: Any) -> Target:
    """Read a target from its JSON form."""
    return _ADAPTER.validate_python(value)


def needs_report(target: Target) -> bool:
    """Whether the commit log alone cannot tell that a target is reached: the job must say so."""
    targets = target.targets if isinstance(target, AllTargets) else (target,)
    return any(isinstance(each, DrainTarget) for each in targets)


def find_shortfall(target: Target, progress: Progress, checkpoint: UPath) -> str | None:
    """Say what of the target is not committed yet, or None when all of it is.

    Looks only at what `commits/` proves, never at what is merely planned.
    """
    if isinstance(target, DrainTarget):
        is_pending = progress.state is State.PENDING
        return f"batch {progress.planned_batch} is pending" if is_pending else None
    if progress.committed_batch is None:
        return "nothing is committed yet"
    if isinstance(target, BatchTarget):
        return _find_batch_shortfall(target, progress.committed_batch)
    if isinstance(target, AllTargets):
        found = (find_shortfall(each, progress, checkpoint) for each in target.targets)
        return "; ".join(filter(None, found)) or None
    position = _find_position(progress, target)
    if position is None:
        return f"source {target.source!r} has no committed position yet"
    match target:
        case FilesTarget():
            return _find_files_shortfall(target, position["logOffset"], checkpoint)
        case DeltaTarget():
            return _find_delta_shortfall(target, position)
        case KafkaTarget():
            return _find_kafka_shortfall(target, position)


def _find_position(
    progress: Progress, target: FilesTarget | DeltaTarget | KafkaTarget
) -> Mapping[str, Any] | None:
    """Return the committed position that a target speaks of, refusing one that it cannot."""
    found = next((s for s in progress.sources if s.source == target.source), None)
    if found is None:
        known = ", ".join(repr(s.source) for s in progress.sources)
        raise TargetMismatchError(
            f"The checkpoint has no source {target.source!r}; it has {known}.",
            remedy="Name one of them in the target.",
        )
    if found.committed is not None and found.kind is not SourceKind(target.kind):
        raise TargetMismatchError(
            f"Source {target.source!r} is of kind {found.kind}, and the target is for "
            f"{target.kind}.",
            remedy="Wait for a target of the source's own kind.",
        )
    return found.committed  # type: ignore[no-any-return]


def _find_batch_shortfall(target: BatchTarget, committed: int) -> str | None:
    if committed >= target.batch_id:
        return None
    return f"batch {committed} is committed, batch {target.batch_id} is not"


def list_missing_files(target: FilesTarget, log_offset: int, checkpoint: UPath) -> list[str]:
    """List the files of a target that are not committed up to an offset of the file log."""
    committed = {
        file.path
        for file in read_file_log(checkpoint, target.source, up_to=log_offset)
        if target.since < file.log_offset <= log_offset
    }
    return [path for path in target.paths if strip_scheme(path) not in committed]


def _find_files_shortfall(target: FilesTarget, log_offset: int, checkpoint: UPath) -> str | None:
    missing = list_missing_files(target, log_offset, checkpoint)
    if not missing:
        return None
    named = ", ".join(path.rpartition("/")[2] for path in missing[:3])
    return f"{len(missing):,} of {len(target.paths):,} files are not committed ({named}, …)"


def _find_delta_shortfall(target: DeltaTarget, position: Mapping[str, Any]) -> str | None:
    version = position["reservoirVersion"]
    if position.get("isStartingVersion"):
        return f"the snapshot of version {version} is not read to its end"
    index = position.get("index")
    is_at_end = (
        target.last_index is not None and isinstance(index, int) and index >= target.last_index
    )
    if version > target.version or (version == target.version and is_at_end):
        return None
    return f"the table is read up to version {version - 1}, not {target.version}"


def _find_kafka_shortfall(target: KafkaTarget, position: Mapping[str, Any]) -> str | None:
    behind = [
        f"{topic}-{partition} at {position.get(topic, {}).get(partition, 0):,} of {end:,}"
        for topic, partitions in target.offsets.items()
        for partition, end in partitions.items()
        if position.get(topic, {}).get(partition, -1) < end
    ]
    return f"{len(behind)} partitions are behind ({', '.join(behind[:3])})" if behind else None
