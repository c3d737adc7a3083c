"""How far a pipeline is behind, against the broker's own account."""

import time
from datetime import UTC, datetime

import pytest

from tidegate.core.errors import BlockedError
from tidegate.core.lag import count_waiting, measure_lag
from tidegate.core.ledger import Ledger
from tidegate.core.plan import plan_run
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


@pytest.mark.parametrize(
    ("start", "lag"),
    [
        ({"starting": "latest"}, 0),
        ({"starting_offsets": {0: 2}}, 1),
        ({"starting_timestamp": "2026-01-02"}, 2),
    ],
)
def test_before_the_first_run_the_lag_counts_from_where_it_would_begin(
    measure, kafka, settings, start, lag
):
    topic = kafka.create(retention_ms="-1")
    for day in (1, 2, 3):
        at = datetime(2026, 1, day, tzinfo=UTC)
        kafka.produce(topic, [day], timestamp_ms=int(at.timestamp() * 1000))
    start = {name: {topic: at} if isinstance(at, dict) else at for name, at in start.items()}
    (only,) = measure(topic, **start)
    assert (only.committed, only.lag_records) == (None, lag)
    assert count_waiting(pipeline(topic, **start), settings) == lag


@pytest.mark.parametrize("count", [0, 9])
def test_a_topic_that_was_created_anew_is_no_topic_without_lag(
    measure, kafka, checkpoint_of, table_at, settings, count
):
    topic = kafka.create()
    kafka.produce(topic, [b"x"] * 5)
    checkpoint = checkpoint_of("orders").batch(0, {topic: {"0": 5}})
    table_at(settings.data + "/sink").append(app_id=f"{checkpoint.query_id}:main", batch=0)
    plan_run(pipeline(topic), settings, "run 1")  # takes down the topic's id
    assert [one.lag_records for one in measure(topic)] == [0]
    kafka.delete(topic)
    kafka.create(topic)
    kafka.produce(topic, [b"x"] * count)
    told = "-0 ends at 0, before the committed 5" if count == 0 else f"{topic} has id "
    with pytest.raises(BlockedError, match=f"not the ones that the checkpoint.*{told}"):
        measure(topic)


def test_a_pattern_that_matches_only_what_is_kafka_s_own_is_told(settings, kafka_default):
    kafka_default.transact(kafka_default.create(), [1], ends="commit")
    spec = pipeline("x").model_dump(mode="json", by_alias=True, exclude_unset=True)
    del spec["source"]["topics"]
    spec["source"]["topic_pattern"] = "^__transaction_state$"
    with pytest.raises(BlockedError, match="No topic matches"):
        measure_lag(Pipeline.model_validate(spec), settings)


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


def test_a_plan_notes_how_old_the_records_are_that_wait(settings, kafka_default):
    topic = kafka_default.create(partitions=2, retention_ms=str(3_600_000))
    kafka_default.produce(topic, [b"x"] * 3, timestamp_ms=minutes_ago(30))
    plan_run(pipeline(topic), settings, "run")
    [waiting] = Ledger.beside(settings.state_of("orders")).read_plan("run").waiting.values()
    assert (waiting.unit, waiting.count) == ("records", 3)
    assert waiting.oldest_seconds == pytest.approx(1800, abs=30)
    assert waiting.headroom_seconds == pytest.approx(1800, abs=30)
