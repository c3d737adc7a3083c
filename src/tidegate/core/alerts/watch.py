"""Looking at all pipelines, or at one whose run just failed, and telling what is beyond its rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache

from tidegate.core.alerts.alert import Alert, find_alerts
from tidegate.core.alerts.channels import choose_channels
from tidegate.core.alerts.failure import Failure
from tidegate.core.alerts.incident import Incidents
from tidegate.core.alerts.measures import Measurement, Measures
from tidegate.core.alerts.rules import Rules, find_interval
from tidegate.core.alerts.telling import Deliver, FindLink, Teller, Telling, find_no_link
from tidegate.core.connection import ReadConnection, read_connection
from tidegate.core.errors import TidegateError
from tidegate.core.settings import Settings
from tidegate.core.spec.alerts import Alerts, Channel, Rule
from tidegate.core.spec.base import NAME_PATTERN
from tidegate.core.spec.loader import LoadedSpec
from tidegate.core.spec.pipeline import Pipeline

_LOOKS_AT_ONCE = 8


@dataclass(frozen=True)
class Sighting:
    """What was seen of one pipeline."""

    pipeline: str
    channels: tuple[Channel, ...]
    alerts: tuple[Alert, ...] = ()
    unknown: Mapping[Rule, str] = field(default_factory=dict)
    """The rules that could not be judged, and why."""
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True)
class Watch:
    """Looks at pipelines, without a JVM."""

    settings: Settings
    channels: tuple[Channel, ...] = ()
    """Who is told where a spec does not say."""
    connect: ReadConnection = read_connection

    def look(self, specs: Sequence[LoadedSpec], name: str | None = None) -> list[Sighting]:
        """Look at all pipelines or just one, some at a time.

        All specs are needed: the interval of a later layer is that of an earlier one. What keeps one
        pipeline from being seen hides no other.
        """
        known = {spec.name: spec.pipeline for spec in specs if spec.pipeline}
        # Pipelines share connections; one whose service does not answer is waited for once.
        connect, away = cache(self.connect), set[str]()

        def look_at(spec: LoadedSpec) -> Sighting:
            if spec.error or spec.pipeline is None:
                return self._tell_mistakes(spec)
            try:
                rules = self._find_rules(spec.pipeline, known)
                taking = Measurement(spec.pipeline, self.settings, rules, connect, away)
                return self._judge(taking, Measurement.measure)
            except Exception as error:
                # Whatever it is, it is this pipeline's: the others are still to be looked at.
                unknown = dict.fromkeys(Rule, f"{type(error).__name__}: {error}")
                channels = choose_channels(spec.pipeline.alerts, self.channels)
                return Sighting(spec.name, channels, unknown=unknown)

        with ThreadPoolExecutor(_LOOKS_AT_ONCE) as pool:
            chosen = (spec for spec in specs if name in (None, spec.name) and _has_folder(spec))
            return list(pool.map(look_at, chosen))

    def look_at_run(self, pipeline: Pipeline) -> Sighting:
        """Look at whether a pipeline's newest run failed, and at nothing else."""
        taking = Measurement(pipeline, self.settings, Rules.of(pipeline.alerts, None), self.connect)
        return self._judge(taking, Measurement.measure_run)

    def settle(
        self, sighting: Sighting, deliver: Deliver, find_link: FindLink = find_no_link
    ) -> Telling:
        """Tell what is new of a sighting, and what is over."""
        incidents = Incidents.beside(self.settings.state_of(sighting.pipeline))
        teller = Teller(
            *(sighting.pipeline, incidents, sighting.channels, deliver),
            lease_seconds=self.settings.lease_seconds,
            find_link=find_link,
        )
        return teller.settle(sighting.alerts, sighting.unknown, sighting.at)

    @staticmethod
    def _find_rules(pipeline: Pipeline, known: Mapping[str, Pipeline]) -> Rules:
        return Rules.of(pipeline.alerts, find_interval(pipeline, known))

    def _judge(self, taking: Measurement, measure: Callable[[Measurement], Measures]) -> Sighting:
        pipeline = taking.pipeline
        channels = choose_channels(pipeline.alerts, self.channels)
        try:
            measures = measure(taking)
        except (TidegateError, OSError) as error:
            unknown = dict.fromkeys(Rule, str(error))
            return Sighting(pipeline.name, channels, unknown=unknown, at=taking.now)
        alerts = find_alerts(measures, taking.rules)
        return Sighting(pipeline.name, channels, alerts, measures.unknown, taking.now)

    def _tell_mistakes(self, spec: LoadedSpec) -> Sighting:
        alerts = spec.pipeline.alerts if spec.pipeline else Alerts()
        failure = Failure(f"its spec is refused: {spec.error}", datetime.now(UTC).isoformat())
        unknown = dict.fromkeys(set(Rule) - {Rule.FAILED_RUN}, "its spec is refused")
        found = find_alerts(Measures(failure, unknown=unknown), Rules.of(alerts, None))
        return Sighting(spec.name, choose_channels(alerts, self.channels), found, unknown)


def _has_folder(spec: LoadedSpec) -> bool:
    # What a broken spec claims as its name may be anything.
    return re.fullmatch(NAME_PATTERN, spec.name) is not None
