"""Lengths of time, for people."""

from __future__ import annotations

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def spell_seconds(seconds: float) -> str:
    """Spell a length of time by its largest unit."""
    size, unit = next((size, unit) for size, unit in _UNITS if abs(seconds) >= size or size == 1)
    return f"{seconds / size:.0f} {unit}" if size == 1 else f"{seconds / size:.1f} {unit}"
