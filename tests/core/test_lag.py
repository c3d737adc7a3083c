"""How far a pipeline is behind, against the broker's own account."""

import time

import pytest

from tidegate.core.lag import measure_lag
from tidegate.core.spec.pipeline import Pipeline

pytestmark = pytest.mark.kafka


def pipeline(topic, **source):
    source = {
        "type": "kafka",
        "topics": [topic],
        "max_offsets_per_trigger": 10,
        "value": {"format": "string"},
    } | source
    sinks = [{"type": "delta", "table": "sink"}]
    return Pipeline.model_validate({"name": "orders", "source": source, "sinks": sinks})


@pytest.fixture
def measure(settings, kafka_default):
    return lambda topic, **source: measure_lag(pipeline(topic, **source), settings)


def minutes_ago(minutes):
    return int((time.time() - 60 * minutes) * 1000)


def test_lag_is_told_in_records_bytes_and_seconds(measure, kafka, checkpoint_of):
    topic = kafka.create(partitions=2, retention_ms=str(3_600_000))
    kafka.produce(topic, [b"x" * 100] * 4, timestamp_ms=minutes_ago(30))
    kafka.produce(topic, [b"x" * 300] * 2, timestamp_ms=minutes_ago(10), key="k" * 50)
    checkpoint_of("orders").batch(0, {topic: {"0": 4, "1": 0}})
    first, second = measure(topic)
    assert (first.committed, first.end, first.lag_records) == (4, 6, 2)
    assert first.lag_bytes == 700
    assert first.lag_seconds == pytest.approx(600, abs=30)
    assert first.headroom_records == 4
    assert first.headroom_seconds == pytest.approx(3000, abs=30)
    assert (second.lag_records, second.lag_bytes, second.lag_seconds) == (0, 0, 0.0)
    assert (second.headroom_records, second.headroom_seconds) == (0, None)


def test_before_the_first_run_everything_lags(measure, kafka):
    topic = kafka.create()
    kafka.produce(topic, [b"x"] * 3)
    kafka.expire(topic, before=1)
    (only,) = measure(topic)
    assert (only.committed, only.end, only.lag_records, only.headroom_records) == (None, 3, 2, None)


def test_records_that_expired_make_the_headroom_negative(measure, kafka, checkpoint_of):
    topic = kafka.create()
    kafka.produce(topic, [b"x"] * 5)
    checkpoint_of("orders").batch(0, {topic: {"0": 1}})
    kafka.expire(topic, before=4)
    (only,) = measure(topic)
    assert (only.lag_records, only.headroom_records) == (4, -3)


@pytest.mark.parametrize("config", [{"retention_ms": "-1"}, {"cleanup_policy": "compact"}])
def test_what_never_expires_has_no_time_left(measure, kafka, config):
    topic = kafka.create(**config)
    kafka.produce(topic, [b"x"], key="k", timestamp_ms=minutes_ago(60))
    (only,) = measure(topic)
    assert (only.lag_records, only.headroom_seconds) == (1, None)
    assert only.lag_seconds == pytest.approx(3600, abs=30)


def test_only_what_a_transaction_left_behind_has_neither_size_nor_age(measure, kafka):
    topic = kafka.create()
    kafka.transact(topic, [1, 2], ends="abort")
    (only,) = measure(topic)
    assert (only.lag_records, only.lag_bytes, only.lag_seconds) == (3, None, None)
