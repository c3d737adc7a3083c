"""What is to be done to files, shown before it is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from upath import UPath

from tidegate.core.storage import is_local, write_bytes


@dataclass(frozen=True)
class Change:
    """Files that are written and files that are deleted below one folder."""

    folder: UPath
    writes: Mapping[str, bytes] = field(default_factory=dict)
    deletes: tuple[str, ...] = ()

    def describe(self) -> Iterator[str]:
        """Say what is done, a line a file."""
        for name in self.deletes:
            yield f"delete {self.folder / name}"
        for name, content in self.writes.items():
            yield f"write  {self.folder / name} ({len(content):,} bytes)"

    def apply(self) -> None:
        """Do it; what is written first is of use only once the rest is deleted, and does no harm."""
        for name, content in sorted(self.writes.items(), key=lambda write: _rank(write[0])):
            self._remove_checksum(name)
            write_bytes(self.folder / name, content)
        # The newest first: whoever looks meanwhile sees a query that has got less far, never a gap.
        for name in sorted(self.deletes, key=_rank, reverse=True):
            self._remove_checksum(name)
            (self.folder / name).unlink(missing_ok=True)

    def _remove_checksum(self, name: str) -> None:
        # Hadoop would hold the new content against it.
        if is_local(self.folder):
            file = self.folder / name
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def _rank(name: str) -> tuple[bool, int, str]:
    # A commit comes after its offsets and goes before them: else it would look like one too many.
    folder, _, file = name.rpartition("/")
    number = file.partition(".")[0]
    is_commit = folder.rpartition("/")[2] == "commits"
    return is_commit, int(number) if number.isdigit() else -1, name


def list_digits(names: Iterable[str], folder: str, above: int) -> tuple[str, ...]:
    """List the entries of a log after one."""
    prefix = f"{folder}/"
    numbers = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return tuple(f"{prefix}{n}" for n in numbers if n.isdigit() and int(n) > above)
