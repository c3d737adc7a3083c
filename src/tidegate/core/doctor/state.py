"""What is wrong with the state that a query would load."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from upath import UPath

from tidegate.core.checkpoint.statelog import (
    Operator,
    StoreFiles,
    list_state,
    read_operators,
    sort_stores,
)
from tidegate.core.doctor.fault import Fault, Severity
from tidegate.core.errors import CheckpointError
from tidegate.core.storage import read_bytes

_LZ4 = b"LZ4Block"
_LZ4_END_BYTES = 21
_REMEDY = (
    "Restore the checkpoint's state from a backup. Without one, give the pipeline a new name and "
    "table, and so a checkpoint of its own, and read its source anew."
)
_SPARK = "Spark would fail with CANNOT_LOAD_STATE_STORE."


@dataclass(frozen=True)
class StateExam:
    """Looks at the files that the next batch would load its state from."""

    checkpoint: UPath
    version: int
    """The version that the next batch begins with; 0 where nothing is remembered yet."""
    reads_files: bool = True
    """Whether files are opened, too, and not listed alone."""

    def find_faults(self) -> Iterator[Fault]:
        """Find what is wrong."""
        files = list_state(self.checkpoint)
        try:
            operators = read_operators(self.checkpoint, files)
        except CheckpointError as error:
            folder = str(self.checkpoint / "state")
            yield Fault("state_metadata_corrupt", Severity.ERROR, folder, str(error), _REMEDY)
            return
        if self.version <= 0:
            return
        stores = sort_stores(files)
        for operator in operators:
            if not operator.is_described:
                yield self._miss_description(operator)
            yield from self._check_operator(operator, stores, files)

    def _check_operator(
        self,
        operator: Operator,
        stores: Mapping[tuple[int, str, int], StoreFiles],
        files: Mapping[str, int],
    ) -> Iterator[Fault]:
        for store, partitions in operator.partitions.items():
            for partition in range(partitions):
                found = stores.get((operator.number, store, partition))
                if found is None:
                    path = f"{operator.number}/{partition}"
                    yield self._miss(path, f"of operator {operator.name}")
                else:
                    yield from self._check_store(found, files)

    def _check_store(self, store: StoreFiles, files: Mapping[str, int]) -> Iterator[Fault]:
        for version, path in store.list_needed(self.version):
            if path is None:
                yield self._miss(f"{store.path}/{version}", f"of version {version}")
                continue
            broken = self._find_damage(path, files)
            if broken:
                file = str(self.checkpoint / "state" / path)
                message = f"{file} is broken: {broken}. {_SPARK}"
                yield Fault("state_corrupt", Severity.ERROR, file, message, _REMEDY)

    def _miss_description(self, operator: Operator) -> Fault:
        file = str(self.checkpoint / "state" / str(operator.number) / "_metadata")
        return Fault(
            "state_metadata_missing",
            Severity.WARNING,
            file,
            f"{file} is missing, which describes a stateful operator whose state is there. Spark before "
            "3.5 wrote none; a later one would not notice that the operator was changed.",
            "Restore it from a backup, unless the checkpoint is that old.",
        )

    def _miss(self, path: str, what: str) -> Fault:
        file = str(self.checkpoint / "state" / path)
        message = f"The state {what} is missing: {file}. {_SPARK}"
        return Fault("state_missing", Severity.ERROR, file, message, _REMEDY)

    def _find_damage(self, path: str, files: Mapping[str, int]) -> str | None:
        if files[path] == 0:
            return "it is empty"
        if not self.reads_files:
            return None
        try:
            data = read_bytes(self.checkpoint / "state" / path)
        except FileNotFoundError:
            return None  # cleared away meanwhile, since a newer one took its place
        if path.endswith(".zip"):
            return _find_zip_damage(data, path, files)
        if not data.startswith(_LZ4[: len(data)]):
            return None  # of another codec
        end = data[-_LZ4_END_BYTES:]
        # The last block is an empty one: no length, no content, no sum.
        is_whole = len(end) == _LZ4_END_BYTES and end.startswith(_LZ4) and not any(end[9:])
        return None if is_whole else "it is cut off"


def _find_zip_damage(data: bytes, path: str, files: Mapping[str, int]) -> str | None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if archive.testzip():
                return "a file in it is damaged"
            _, _, body = archive.read("metadata").decode().partition("\n")
            needed = [one["dfsSstFileName"] for one in json.loads(body)["sstFiles"]]
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError) as error:
        return f"it is no archive of a state ({error})"
    folder = path.rpartition("/")[0]
    missing = [name for name in needed if f"{folder}/SSTs/{name}" not in files]
    return f"it needs SSTs/{missing[0]}, which is missing" if missing else None
