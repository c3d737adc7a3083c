"""What a query remembers: its stateful operators, and the files of their state.

    state/<operator>/_metadata/metadata            the operator's name and its stores
    state/<operator>/_metadata/v2/<batch>          the same, where they may change with a batch
    state/<operator>/<partition>/[<store>/]        a store's files; the default one has no folder
        <version>.delta, .snapshot                 kept by Spark itself
        <version>.changelog, .zip                  kept by RocksDB
        <version>_<id>.changelog, .zip             the same, where a version may have several

The state after batch N has version N + 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from upath import UPath

from tidegate.core.checkpoint.lines import corrupt, parse_object, read_lines
from tidegate.core.storage import find_files

_FILE = re.compile(
    r"(?P<operator>\d+)/(?P<partition>\d+)/((?P<store>[^/]+)/)?"
    r"(?P<version>\d+)(_[0-9a-f-]+)?\.(?P<kind>delta|snapshot|changelog|zip)"
)
_METADATA = re.compile(r"(?P<operator>\d+)/_metadata/(metadata|v2/(?P<batch>\d+))")
_DEFAULT_STORE = "default"
_METADATA_VERSION = 2


@dataclass(frozen=True)
class Operator:
    """A stateful operator, as the checkpoint describes it."""

    number: int
    name: str
    partitions: Mapping[str, int]
    """How many partitions each of its stores has."""
    is_described: bool = True
    """Whether the checkpoint says so; else its files do, as far as they are there."""


@dataclass
class StoreFiles:
    """The files of one store of one partition, by version."""

    path: str
    steps: dict[int, str] = field(default_factory=dict)
    """What a version changed."""
    wholes: dict[int, str] = field(default_factory=dict)
    """All that is remembered as of a version."""

    def find_base(self, version: int) -> int:
        """Find the newest whole that a version can be built on; 0, where nothing is remembered."""
        return max((known for known in self.wholes if known <= version), default=0)

    def list_needed(self, version: int) -> list[tuple[int, str | None]]:
        """List the files that a version is built of; None stands for one that is missing."""
        base = self.find_base(version)
        needed: list[tuple[int, str | None]] = [(base, self.wholes[base])] if base else []
        return needed + [(step, self.steps.get(step)) for step in range(base + 1, version + 1)]


def read_operators(checkpoint: UPath, files: Mapping[str, int]) -> list[Operator]:
    """Read which stateful operators a checkpoint has, from a listing of its state."""
    found = [match for match in map(_METADATA.fullmatch, files) if match]
    # Of what changes with a batch, the newest holds.
    found.sort(key=lambda match: (int(match["operator"]), int(match["batch"] or 0)))
    newest = {int(match["operator"]): match[0] for match in found}
    described = {n: _read_operator(checkpoint, n, path) for n, path in newest.items()}
    return [*described.values(), *_guess_operators(files, described)]


def _guess_operators(
    files: Mapping[str, int], described: Mapping[int, Operator]
) -> Iterator[Operator]:
    partitions: dict[int, dict[str, int]] = {}
    for number, store, partition in sort_stores(files):
        if number not in described:
            known = partitions.setdefault(number, {})
            known[store] = max(known.get(store, 0), partition + 1)
    for number, stores in sorted(partitions.items()):
        yield Operator(number, "unknown", stores, is_described=False)


def is_stateful(checkpoint: UPath) -> bool:
    """Whether the query remembers rows."""
    return bool(read_operators(checkpoint, list_state(checkpoint)))


def list_state(checkpoint: UPath) -> dict[str, int]:
    """List all files of a checkpoint's state, and their sizes."""
    return find_files(checkpoint / "state")


def sort_stores(files: Mapping[str, int]) -> dict[tuple[int, str, int], StoreFiles]:
    """Sort the files of the state by operator, store and partition."""
    stores: dict[tuple[int, str, int], StoreFiles] = {}
    for path in files:
        match = _FILE.fullmatch(path)
        if not match:
            continue
        store = match["store"] or _DEFAULT_STORE
        key = (int(match["operator"]), store, int(match["partition"]))
        found = stores.setdefault(key, StoreFiles(path.rpartition("/")[0]))
        is_whole = match["kind"] in ("snapshot", "zip")
        (found.wholes if is_whole else found.steps)[int(match["version"])] = path
    return stores


def _read_operator(checkpoint: UPath, number: int, path: str) -> Operator:
    file = checkpoint / "state" / path
    _, lines = read_lines(file, newest_version=_METADATA_VERSION)
    body = parse_object(str(file), lines[0] if lines else "")
    try:
        return Operator(
            number,
            str(body["operatorInfo"]["operatorName"]),
            {str(one["storeName"]): int(one["numPartitions"]) for one in body["stateStoreInfo"]},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise corrupt(str(file), f"it does not describe an operator ({error!r})") from error
