"""What waits in several sources, and in Kafka by the broker's own account."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.core.alerts.conftest import make_pipeline
from tidegate.core.alerts.waiting import NOTHING, Waiting, WaitingLook, combine_waiting
from tidegate.core.checkpoint.progress import read_progress
from tidegate.core.connection import read_connection


def test_of_several_sources_the_worst_counts():
    found = combine_waiting(
        [
            NOTHING,
            Waiting(True, records=5, seconds=60, kept_seconds=900, retention_seconds=1000),
            Waiting(True, records=7, seconds=30, kept_seconds=50, retention_seconds=80),
        ]
    )
    assert found == Waiting(True, 12, 60, 50, 80)


@pytest.mark.parametrize(
    ("known", "together"),
    [([False, False], False), ([False, None], None), ([None, True], True), ([], False)],
)
def test_whether_anything_waits_may_be_unknown(known, together):
    assert combine_waiting(map(Waiting, known)).is_any is together


@pytest.mark.kafka
def test_records_in_kafka_wait_and_are_kept_for_so_long(settings, kafka_default, checkpoint_of):
    topic = kafka_default.create(retention_ms=str(3_600_000))
    sent_ms = int((time.time() - 1800) * 1000)
    kafka_default.produce(topic, [b"x"] * 5, timestamp_ms=sent_ms)
    checkpoint_of("p").batch(0, {topic: {"0": 2}})
    source = {
        "type": "kafka",
        "topics": [topic],
        "max_offsets_per_trigger": 10,
        "value": {"format": "string"},
    }
    now = datetime.now(UTC)
    look = WaitingLook(
        *(make_pipeline(source=source), settings, read_progress(settings.checkpoint_of("p"))),
        *(read_connection, now, now - timedelta(days=1)),
    )
    found = look.measure()
    assert (found.is_any, found.records) == (True, 3)
    assert found.seconds == pytest.approx(1800, abs=60)
    assert found.kept_seconds == pytest.approx(1800, abs=60)
    assert found.retention_seconds == pytest.approx(3600, abs=1)
