"""The specs of a deployment, read again only when one of them has changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from tidegate.core.spec.loader import SUFFIXES, LoadedSpec, load_specs

_Print = tuple[tuple[str, int, int], ...]


@dataclass
class Catalog:
    """The specs of a folder, for a process that is asked for them again and again."""

    folder: Path
    _seen: _Print | None = None
    _specs: dict[str, LoadedSpec] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def list_specs(self) -> dict[str, LoadedSpec]:
        """List all specs by the names of their pipelines."""
        with self._lock:
            found = _print_of(self.folder)
            if found != self._seen:
                self._specs = {spec.name: spec for spec in load_specs(self.folder)}
                self._seen = found
            return self._specs


def _print_of(folder: Path) -> _Print:
    files = (file for file in folder.iterdir() if file.suffix in SUFFIXES)
    stats = ((file.name, file.stat()) for file in files)
    return tuple(sorted((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats))
