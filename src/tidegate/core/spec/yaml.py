"""YAML as plain values, and as values that know their lines; a date stays a text in both.

A wrong date is then told by its field, as any other mistake is.
"""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import RoundTripConstructor, SafeConstructor

_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class _Plain(SafeConstructor):
    pass


class _WithLines(RoundTripConstructor):
    pass


_Plain.add_constructor(_TIMESTAMP, SafeConstructor.construct_yaml_str)
_WithLines.add_constructor(_TIMESTAMP, RoundTripConstructor.construct_scalar)


def load_yaml(text: str) -> Any:
    """Read plain values, quickly."""
    return _load(text, "safe", _Plain)


def load_yaml_with_lines(text: str) -> Any:
    """Read values that know their lines."""
    return _load(text, "rt", _WithLines)


def _load(text: str, kind: str, constructor: type) -> Any:
    parser = YAML(typ=kind, pure=True)
    parser.Constructor = constructor
    return parser.load(text)
