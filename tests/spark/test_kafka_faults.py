"""Kafka when it misbehaves: a broker that dies, partitions that appear, records that vanish."""

import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from demo.broker import Broker
from tests.kafka_cluster import Cluster
from tidegate.core.condition import Verdict
from tidegate.core.errors import SinkError
from tidegate.core.ledger import Decision, Outcome
from tidegate.spark.runner import run_pipeline
from tidegate.spark.sinks.delta import DeltaAppend

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).resolve().parents[2]


def kafka_source(topic, **more):
    value = {"format": "json", "schema": "id long"}
    source = {"type": "kafka", "topics": [topic], "max_offsets_per_trigger": 6, "value": value}
    return source | more


def orders(*ids):
    return [{"id": number} for number in ids]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """A broker that may be killed, and that compacts as soon as it can."""
    settings = {"log.cleaner.backoff.ms": "100"}
    broker = Broker(tmp_path_factory.mktemp("broker"), ROOT / "jars" / "broker", settings)
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture
def own(broker, monkeypatch):
    """That broker, known as the connection that specs use by default."""
    if broker.process is None:
        broker.start()
    cluster = Cluster(broker)
    monkeypatch.setenv("TIDEGATE_CONN_KAFKA_DEFAULT", json.dumps(cluster.options))
    return cluster


@pytest.fixture
def at_batch(monkeypatch):
    """Let something happen just before or just after a batch is written to the table, once."""

    def arrange(wanted, action, *, is_written=False):
        write, waiting = DeltaAppend.write, [wanted]

        def write_and_act(self, batch, batch_id, query_id):
            is_now = batch_id in waiting
            waiting[:] = [] if is_now else waiting
            if is_now and not is_written:
                action()
            record = write(self, batch, batch_id, query_id)
            if is_now and is_written:
                action()
            return record

        monkeypatch.setattr(DeltaAppend, "write", write_and_act)

    return arrange


def die():
    raise SinkError("The machine went away.")


@pytest.fixture
def spread(own):
    """A topic of which a consumer gets a few records at a time, so that it must ask often."""
    topic = own.create(partitions=2)
    for start in range(0, 60, 3):
        own.produce(topic, orders(*range(start, start + 3)), partition=start % 2)
    return topic


def spread_source(topic, patience_ms):
    options = {
        "kafka.max.partition.fetch.bytes": 1,
        "kafka.fetch.max.bytes": 1,
        "kafkaConsumer.pollTimeoutMs": patience_ms,
        "kafka.default.api.timeout.ms": patience_ms,
        "kafka.request.timeout.ms": 5000,
    }
    return kafka_source(topic, max_offsets_per_trigger=20, options=options)


def test_a_run_outlives_a_broker_that_is_killed_and_comes_back(
    runs, pipeline_of, broker, spread, rows_of, at_batch
):
    pipeline = pipeline_of(spread_source(spread, patience_ms=180_000))
    restarts = []
    with ThreadPoolExecutor() as pool:

        def kill_and_restart():
            broker.stop(signal.SIGKILL)
            restarts.append(pool.submit(broker.start))

        at_batch(1, kill_and_restart)
        run = runs.run(pipeline)
        restarts[0].result()
    assert [batch.input_rows for batch in run.batches] == [20, 20, 20]
    assert rows_of("out", "id") == [(n,) for n in range(60)]
    assert runs.plan(pipeline).decision is Decision.IDLE


def test_a_run_whose_broker_stays_away_fails_and_its_retry_goes_on(
    runs, pipeline_of, settings, broker, spread, rows_of, at_batch, monkeypatch
):
    pipeline = pipeline_of(spread_source(spread, patience_ms=5000))
    plan = runs.plan(pipeline)
    at_batch(1, lambda: broker.stop(signal.SIGKILL))
    with pytest.raises(Exception, match="TimeoutException"):
        run_pipeline(pipeline, settings, plan.run_id)
    run = runs.ledger(pipeline).read_run(plan.run_id)
    assert [batch.batch_id for batch in run.batches] == [0]
    assert run.attempt.outcome is Outcome.FAILED
    assert run.attempt.error.startswith("Spark failed: TimeoutException: ")
    assert runs.judge(pipeline, plan).verdict is Verdict.FAILED
    with monkeypatch.context() as patch:
        patch.setattr("tidegate.core.ends.kafka._TIMEOUT_SECONDS", 1)
        away = runs.plan(pipeline)
    assert (away.decision, away.is_passing) == (Decision.BLOCKED, True)

    broker.start()
    run_pipeline(pipeline, settings, plan.run_id)
    assert runs.judge(pipeline, plan).verdict is Verdict.REACHED
    assert rows_of("out", "id") == [(n,) for n in range(60)]
    assert runs.plan(pipeline).decision is Decision.IDLE


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize("pending", [0, 1])
def test_partitions_that_appear_while_a_batch_is_pending_are_read_after_it(
    runs, pipeline_of, settings, kafka_default, rows_of, at_batch, pending, is_written
):
    topic = kafka_default.create(partitions=2)
    kafka_default.produce(topic, orders(*range(4)))
    kafka_default.produce(topic, orders(*range(4, 8)), partition=1)
    pipeline = pipeline_of(kafka_source(topic, max_offsets_per_trigger=4))
    failed = runs.plan(pipeline)
    at_batch(pending, die, is_written=is_written)
    with pytest.raises(SinkError):
        run_pipeline(pipeline, settings, failed.run_id)
    progress = runs.judge(pipeline, failed).progress
    assert (progress.state, progress.planned_batch) == ("pending", pending)

    kafka_default.add_partitions(topic, 4)
    kafka_default.produce(topic, orders(8, 9), partition=2)
    kafka_default.produce(topic, orders(*range(10, 15)), partition=3)
    plan = runs.plan(pipeline)
    assert plan.decision is Decision.RUN
    assert plan.target.offsets == {topic: {"0": 4, "1": 4, "2": 2, "3": 5}}
    run_pipeline(pipeline, settings, plan.run_id)
    assert runs.judge(pipeline, plan).verdict is Verdict.REACHED
    assert rows_of("out", "id") == [(n,) for n in range(15)]
    assert runs.plan(pipeline).decision is Decision.IDLE


class Compacted:
    """A topic of two keys, compacted for real when asked."""

    def __init__(self, cluster):
        self._cluster = cluster
        self.topic = cluster.create(
            cleanup_policy="compact",
            segment_ms="1000",
            min_cleanable_dirty_ratio="0.01",
            max_compaction_lag_ms="1000",
            delete_retention_ms="100",
        )
        self._began_ms = int(time.time() * 1000) - 60_000

    def produce(self, *ids):
        """Append records, of the even key or of the odd one, to the segment that is open."""
        for number in ids:
            self._append(number, self._began_ms)

    def compact(self, last):
        """Close the segment by one more record, and wait until just the newest of a key are left."""
        self._append(last, 0)
        end = sum(self._cluster.read_ends(self.topic).values())
        while (left := self._read_ids()) != [last - 2, last - 1, last]:
            assert self._cluster.broker.process.poll() is None
        assert len(left) < end == last + 1

    def _append(self, number, timestamp_ms):
        key = "odd" if number % 2 else "even"
        self._cluster.produce(self.topic, orders(number), key=key, timestamp_ms=timestamp_ms)

    def _read_ids(self):
        return [json.loads(record.value())["id"] for record in self._cluster.read(self.topic)]


@pytest.fixture
def compacted(own):
    return Compacted(own)


def test_what_compaction_left_is_read_and_the_gaps_are_reached(
    runs, pipeline_of, compacted, rows_of
):
    compacted.produce(*range(20))
    compacted.compact(20)
    pipeline = pipeline_of(kafka_source(compacted.topic))
    run = runs.run(pipeline)
    assert rows_of("out", "id", "_offset") == [(18, 18), (19, 19), (20, 20)]
    assert [batch.input_rows for batch in run.batches] == [0, 0, 0, 3]
    assert run.summary.output_rows == 3
    assert runs.plan(pipeline).decision is Decision.IDLE


def test_what_compaction_takes_between_two_runs_is_not_missed(
    runs, pipeline_of, compacted, rows_of
):
    pipeline = pipeline_of(kafka_source(compacted.topic))
    compacted.produce(*range(7))
    assert runs.run(pipeline).summary.output_rows == 7
    compacted.produce(*range(7, 20))
    compacted.compact(20)
    assert runs.run(pipeline).summary.output_rows == 3
    assert rows_of("out", "id") == [(n,) for n in (*range(7), 18, 19, 20)]
    assert runs.plan(pipeline).decision is Decision.IDLE


@pytest.mark.parametrize("is_written", [False, True])
def test_a_pending_batch_whose_records_were_compacted_is_replayed_without_them(
    runs, pipeline_of, settings, compacted, rows_of, at_batch, is_written
):
    pipeline = pipeline_of(kafka_source(compacted.topic))
    compacted.produce(*range(20))
    plan = runs.plan(pipeline)
    at_batch(1, die, is_written=is_written)
    with pytest.raises(SinkError):
        run_pipeline(pipeline, settings, plan.run_id)
    compacted.compact(20)
    run_pipeline(pipeline, settings, plan.run_id)
    assert runs.judge(pipeline, plan).verdict is Verdict.REACHED
    written = range(12 if is_written else 6)
    assert rows_of("out", "id") == [(n,) for n in (*written, 18, 19, 20)]
    assert runs.plan(pipeline).decision is Decision.IDLE
