"""Where a deployment keeps things, from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from upath import UPath

from tidegate.core.checkpoint.belongings import CHECKPOINT
from tidegate.core.errors import SettingsError
from tidegate.core.storage import open_path, spell_for_spark

_SHORTEST_SECONDS, _LONGEST_SECONDS = 1, 3600


@dataclass(frozen=True)
class Settings:
    """Where a deployment keeps its specs, tables, state and JARs."""

    home: Path
    pipelines: Path
    data: str
    """Root of the landing zones and tables that specs name by a relative path."""
    state: str
    """Root of checkpoints and run ledgers."""
    jars: Path
    lease_seconds: float = 30
    """How long a driver may be silent before another takes its checkpoint over."""

    @classmethod
    def from_environment(
        cls, home: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> Settings:
        """Take settings from TIDEGATE_* variables, with defaults below the home folder."""
        env = os.environ if environment is None else environment
        root = Path(env.get("TIDEGATE_HOME") or home or Path.cwd()).absolute()
        return cls(
            home=root,
            pipelines=root / (env.get("TIDEGATE_PIPELINES") or "pipelines"),
            data=_below(root, env.get("TIDEGATE_DATA") or "var/data"),
            state=_below(root, env.get("TIDEGATE_STATE") or "var/state"),
            jars=root / (env.get("TIDEGATE_JARS") or "jars"),
            lease_seconds=_read_seconds(env, "TIDEGATE_LEASE_SECONDS", cls.lease_seconds),
        )

    def to_environment(self) -> dict[str, str]:
        """Spell the settings as variables, for a driver that is started elsewhere."""
        return {
            "TIDEGATE_HOME": str(self.home),
            "TIDEGATE_PIPELINES": str(self.pipelines),
            "TIDEGATE_DATA": self.data,
            "TIDEGATE_STATE": self.state,
            "TIDEGATE_JARS": str(self.jars),
            "TIDEGATE_LEASE_SECONDS": f"{self.lease_seconds:g}",
        }

    def locate(self, path: str) -> UPath:
        """Find a landing zone or table: relative ones are below the data root."""
        return open_path(self._join(path))

    def locate_url(self, path: str) -> str:
        """Find a landing zone or table, as Spark spells it."""
        return spell_for_spark(self._join(path))

    def _join(self, path: str) -> str:
        is_absolute = path.startswith("/") or ":/" in path
        return path if is_absolute else f"{self.data.rstrip('/')}/{path}"

    def state_of(self, pipeline: str) -> UPath:
        """Find a pipeline's state folder: its checkpoint and its run ledger."""
        return open_path(self.state) / pipeline

    def checkpoint_of(self, pipeline: str) -> UPath:
        """Find a pipeline's checkpoint."""
        return self.state_of(pipeline) / CHECKPOINT

    def sink_state_of(self, pipeline: str, sink: str) -> UPath:
        """Find where a sink keeps what it must know of the batch at hand."""
        return self.state_of(pipeline) / "sinks" / sink

    def checkpoint_url_of(self, pipeline: str) -> str:
        """Find a pipeline's checkpoint, as Spark spells it."""
        return spell_for_spark(f"{self.state.rstrip('/')}/{pipeline}/{CHECKPOINT}")


def _read_seconds(environment: Mapping[str, str], name: str, default: float) -> float:
    given = environment.get(name) or str(default)
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not _SHORTEST_SECONDS <= seconds <= _LONGEST_SECONDS:
        raise SettingsError(
            f"{name} is {given!r}, and must be a number of seconds from {_SHORTEST_SECONDS} to "
            f"{_LONGEST_SECONDS}.",
            remedy=f"Set it to such a number, or leave it out for {default:g}.",
        )
    return seconds


def _below(root: Path, location: str) -> str:
    return location if ":/" in location else str(root / location)
