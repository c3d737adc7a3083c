"""Who is told where a spec does not say: TIDEGATE_NOTIFY."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pydantic import TypeAdapter, ValidationError
from ruamel.yaml.error import YAMLError

from tidegate.core.errors import SettingsError
from tidegate.core.spec.alerts import Alerts, Channel
from tidegate.core.spec.yaml import load_yaml

NOTIFY = "TIDEGATE_NOTIFY"

_CHANNELS: TypeAdapter[tuple[Channel, ...]] = TypeAdapter(tuple[Channel, ...])


def read_channels(environment: Mapping[str, str] | None = None) -> tuple[Channel, ...]:
    """Read who is told by default, as a spec's alerts.notify spells it."""
    given = (os.environ if environment is None else environment).get(NOTIFY)
    if not given:
        return ()
    try:
        return _CHANNELS.validate_python(load_yaml(given))
    except (ValidationError, YAMLError) as error:
        raise SettingsError(
            f"{NOTIFY} cannot be read: {error}",
            remedy=f"Spell it as alerts.notify of a spec, such as {NOTIFY}="
            "'[{type: smtp, to: [ops@example.com]}]'.",
        ) from error


def choose_channels(alerts: Alerts | None, default: tuple[Channel, ...]) -> tuple[Channel, ...]:
    """Choose who is told of a pipeline."""
    return default if alerts is None or alerts.notify is None else alerts.notify
