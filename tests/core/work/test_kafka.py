"""What waits in Kafka, and what keeps it from being read, asked of a real broker."""

import json
from datetime import UTC, datetime

import pytest

from tidegate.core.ledger import Decision
from tidegate.core.plan import plan_run
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.target import KafkaTarget

pytestmark = pytest.mark.kafka


def pipeline(*topics, **source):
    source = {
        "type": "kafka",
        "max_offsets_per_trigger": 10,
        "value": {"format": "string"},
    } | source
    if topics:
        source["topics"] = topics
    sinks = [{"type": "delta", "table": "sink"}]
    return Pipeline.model_validate({"name": "orders", "source": source, "sinks": sinks})


@pytest.fixture
def plan(settings, kafka_default):
    def plan(spec, run_id="run 1", **more):
        return plan_run(spec, settings, run_id, **more)

    return plan


@pytest.fixture
def committed(checkpoint_of, table_at, settings):
    """Commit a position, with a sink that holds it."""
    checkpoint = checkpoint_of("orders")

    def commit(position, batch=0):
        checkpoint.batch(batch, position)
        table_at(settings.data + "/sink").append(app_id=f"{checkpoint.query_id}:main", batch=batch)

    return commit


@pytest.fixture
def topic(kafka):
    """A topic of two partitions, with three records and one."""
    topic = kafka.create(partitions=2)
    kafka.produce(topic, [1, 2, 3])
    kafka.produce(topic, [4], partition=1)
    return topic


def test_the_first_run_reads_all_that_is_there(plan, topic):
    planned = plan(pipeline(topic))
    assert planned.decision is Decision.RUN
    assert planned.reason == "4 records wait in 2 partitions"
    assert planned.target == KafkaTarget({topic: {"0": 3, "1": 1}})


def test_only_what_is_not_committed_waits(plan, topic, committed):
    committed({topic: {"0": 2, "1": 1}})
    planned = plan(pipeline(topic))
    assert planned.reason == "1 records wait in 2 partitions"
    assert planned.target == KafkaTarget({topic: {"0": 3, "1": 1}})
    committed({topic: {"0": 3, "1": 1}}, batch=1)
    planned = plan(pipeline(topic), "run 2")
    assert (planned.decision, planned.reason) == (Decision.IDLE, "no new records in 2 partitions")


def test_an_empty_topic_is_nothing_to_do(plan, kafka):
    assert plan(pipeline(kafka.create())).decision is Decision.IDLE


def test_a_first_run_from_the_end_takes_its_position_although_nothing_waits(plan, topic, committed):
    planned = plan(pipeline(topic, starting="latest"))
    assert (planned.decision, planned.reason) == (Decision.RUN, "0 records wait in 2 partitions")
    committed({topic: {"0": 3, "1": 1}})
    assert plan(pipeline(topic, starting="latest"), "run 2").decision is Decision.IDLE


def test_a_first_run_may_begin_at_offsets(plan, topic):
    planned = plan(pipeline(topic, starting_offsets={topic: {0: 2}}))
    assert planned.reason == "2 records wait in 2 partitions"


@pytest.mark.parametrize(
    ("offsets", "told"), [({0: 4}, "-0 has 0 to 3, not 4"), ({7: 0}, "there is no ")]
)
def test_offsets_that_are_not_there_block(plan, topic, offsets, told):
    planned = plan(pipeline(topic, starting_offsets={topic: offsets}))
    assert planned.decision is Decision.BLOCKED
    assert told in planned.reason


def test_a_first_run_may_begin_at_a_time(plan, kafka):
    topic = kafka.create(retention_ms="-1")
    for day in (1, 2, 3):
        at = datetime(2026, 1, day, tzinfo=UTC)
        kafka.produce(topic, [day], timestamp_ms=int(at.timestamp() * 1000))
    assert plan(pipeline(topic, starting_timestamp="2026-01-02")).reason.startswith("2 records")
    assert plan(pipeline(topic, starting_timestamp="2026-02-01")).decision is Decision.IDLE


def test_topics_may_be_named_by_a_pattern(plan, kafka):
    for name in ("ab-one", "ab-two", "other"):
        kafka.produce(kafka.create(f"{name}-{id(plan)}"), [1])
    planned = plan(pipeline(topic_pattern=f"^ab-.*{id(plan)}"))
    assert planned.reason == "2 records wait in 2 partitions"


def test_a_pattern_leaves_out_what_is_kafka_s_own_and_nothing_else(plan, kafka):
    kafka.transact(kafka.create(), [1], ends="commit")  # makes __transaction_state
    names = [kafka.create(f"{prefix}{id(plan)}") for prefix in ("__mine", "mine")]
    for name in names:
        kafka.produce(name, [1])
    planned = plan(pipeline(topic_pattern=f"mine{id(plan)}|__transaction_state"))
    assert sorted(planned.target.offsets) == sorted(names)


def test_a_pattern_that_matches_nothing_blocks(plan):
    planned = plan(pipeline(topic_pattern="no such topic"))
    assert planned.decision is Decision.BLOCKED
    assert "No topic matches 'no such topic'." in planned.reason


def test_a_pattern_that_matches_only_what_is_kafka_s_own_blocks(plan, kafka):
    kafka.transact(kafka.create(), [1], ends="commit")  # makes __transaction_state
    planned = plan(pipeline(topic_pattern="^__transaction_state$"))
    assert planned.decision is Decision.BLOCKED
    assert "No topic matches '^__transaction_state$'." in planned.reason


def test_just_some_partitions_may_be_read(plan, topic):
    planned = plan(pipeline(partitions={topic: [1]}))
    assert planned.target == KafkaTarget({topic: {"1": 1}})
    planned = plan(pipeline(partitions={topic: [1, 9]}), "run 2")
    assert planned.decision is Decision.BLOCKED
    assert f"The topic {topic} has no partition 9. It has 2" in planned.reason


def test_few_records_wait_until_there_are_more_or_time_has_passed(plan, topic, committed, kafka):
    spec = pipeline(topic, min_offsets_per_trigger=4, max_trigger_delay="1h")
    assert plan(spec).decision is Decision.RUN
    committed({topic: {"0": 2, "1": 1}})
    planned = plan(spec, "run 2")
    assert planned.decision is Decision.IDLE
    assert planned.reason.startswith("1 records wait, fewer than 4; a run starts 1h after")
    passed = pipeline(topic, min_offsets_per_trigger=4, max_trigger_delay="0s")
    assert plan(passed, "run 3").decision is Decision.RUN
    kafka.produce(topic, [5, 6, 7])
    assert plan(spec, "run 4").decision is Decision.RUN


@pytest.mark.parametrize(("isolation", "waiting"), [("read_committed", 2), ("read_uncommitted", 4)])
def test_an_open_transaction_ends_a_committed_read(plan, kafka, isolation, waiting):
    topic = kafka.create()
    kafka.produce(topic, [1, 2])
    producer = kafka.transact(topic, [3, 4], ends="never")
    planned = plan(pipeline(topic, isolation=isolation))
    assert planned.target == KafkaTarget({topic: {"0": waiting}})
    producer.abort_transaction()


def test_an_aborted_transaction_is_passed_over(plan, kafka):
    topic = kafka.create()
    kafka.transact(topic, [1, 2], ends="abort")
    assert plan(pipeline(topic)).target == KafkaTarget({topic: {"0": 3}})  # with its marker


def test_new_partitions_are_read_from_their_start(plan, topic, committed, kafka):
    committed({topic: {"0": 3, "1": 1}})
    kafka.add_partitions(topic, 3)
    kafka.produce(topic, [9], partition=2)
    planned = plan(pipeline(topic))
    assert planned.reason == "1 records wait in 3 partitions"
    assert planned.target == KafkaTarget({topic: {"0": 3, "1": 1, "2": 1}})


class TestBlocked:
    """What no retry can mend, in words."""

    def test_expired_records(self, plan, topic, committed, kafka):
        committed({topic: {"0": 1, "1": 1}})
        kafka.expire(topic, before=3)
        planned = plan(pipeline(topic))
        assert planned.decision is Decision.BLOCKED
        assert planned.reason.startswith(
            f"2 records expired before they were read, in 1 of 2 partitions ({topic}-0 2). "
            "The last commit was at "
        )
        assert "tidegate run orders --accept-data-loss" in planned.reason
        assert (
            """airflow dags trigger orders --conf '{"accept_data_loss": true}'""" in planned.reason
        )

    @pytest.mark.parametrize("how", ["by the run", "by the spec"])
    def test_expired_records_may_be_given_up(self, plan, topic, committed, kafka, how):
        committed({topic: {"0": 1, "1": 0}})
        kafka.expire(topic, before=3)
        spec = pipeline(topic, fail_on_data_loss=how != "by the spec")
        planned = plan(spec, accepts_loss=how == "by the run")
        assert planned.decision is Decision.RUN
        assert planned.accepts_loss is (how == "by the run")
        assert planned.reason == "1 records wait in 2 partitions"
        assert "2 records expired" in planned.warning
        assert "They are lost" in planned.warning

    def test_giving_up_all_that_waits_takes_the_position_after_it(
        self, plan, topic, committed, kafka
    ):
        committed({topic: {"0": 1, "1": 1}})
        kafka.expire(topic, before=3)
        planned = plan(pipeline(topic), accepts_loss=True)
        assert (planned.decision, planned.reason) == (
            Decision.RUN,
            "0 records wait in 2 partitions",
        )
        assert planned.target == KafkaTarget({topic: {"0": 3, "1": 1}})

    def test_a_topic_that_is_gone(self, plan, topic, committed, kafka):
        committed({topic: {"0": 1, "1": 1}})
        kafka.delete(topic)
        planned = plan(pipeline(topic))
        assert (planned.decision, planned.is_passing) == (Decision.BLOCKED, False)
        assert f"The topic {topic} does not exist." in planned.reason

    def test_a_topic_that_the_spec_no_longer_names(self, plan, topic, committed, kafka):
        committed({topic: {"0": 1, "1": 1}})
        planned = plan(pipeline(kafka.create()))
        assert planned.decision is Decision.BLOCKED
        assert f"{topic} is gone or no longer in the spec" in planned.reason

    def test_a_topic_that_was_created_anew_with_less(self, plan, topic, committed, kafka):
        committed({topic: {"0": 3, "1": 1}})
        kafka.delete(topic)
        kafka.create(topic, partitions=2)
        planned = plan(pipeline(topic))
        assert planned.decision is Decision.BLOCKED
        assert f"{topic}-0 ends at 0, before the committed 3" in planned.reason
        assert "created anew" in planned.reason

    def test_a_topic_that_was_created_anew_with_as_much(self, plan, topic, committed, kafka):
        committed({topic: {"0": 3, "1": 1}})
        assert plan(pipeline(topic)).decision is Decision.IDLE
        kafka.delete(topic)
        kafka.create(topic, partitions=2)
        kafka.produce(topic, range(9))
        kafka.produce(topic, range(9), partition=1)
        for run_id in ("run 2", "run 3"):
            planned = plan(pipeline(topic), run_id)
            assert planned.decision is Decision.BLOCKED
            assert f"{topic} has id " in planned.reason

    def test_fewer_partitions(self, plan, topic, committed, kafka):
        committed({topic: {"0": 3, "1": 1}})
        kafka.delete(topic)
        kafka.create(topic)
        kafka.produce(topic, range(9))
        planned = plan(pipeline(topic))
        assert planned.decision is Decision.BLOCKED
        assert f"{topic} has 1 partitions, it had 2" in planned.reason

    def test_partitions_that_the_spec_no_longer_names(self, plan, topic, committed):
        committed({topic: {"0": 3, "1": 1}})
        planned = plan(pipeline(partitions={topic: [0]}))
        assert planned.decision is Decision.BLOCKED
        told = f"source.partitions leaves out partition 1 of {topic}, which was read."
        assert told in planned.reason

    def test_no_broker(self, settings, monkeypatch):
        from tidegate.core.ends import kafka

        monkeypatch.setattr(kafka, "_TIMEOUT_SECONDS", 2.0)
        options = {"bootstrap.servers": "127.0.0.1:9"}
        planned = plan_run(pipeline("t"), settings, "run 1", connect=lambda _: options)
        assert (planned.decision, planned.is_passing) == (Decision.BLOCKED, True)
        assert (
            "No broker of the connection 'kafka_default' answers (127.0.0.1:9)." in planned.reason
        )

    def test_no_connection(self, settings, monkeypatch):
        monkeypatch.delenv("TIDEGATE_CONN_KAFKA_DEFAULT", raising=False)
        planned = plan_run(pipeline("t"), settings, "run 1")
        assert planned.decision is Decision.BLOCKED
        assert "There is no connection 'kafka_default'." in planned.reason
        assert "TIDEGATE_CONN_KAFKA_DEFAULT=" in planned.reason


def test_64_partitions_are_asked_at_once(plan, kafka):
    topic = kafka.create(partitions=64)
    for partition in range(64):
        kafka.produce(topic, [partition], partition=partition)
    planned = plan(pipeline(topic))
    assert planned.reason == "64 records wait in 64 partitions"


def test_a_secret_is_in_no_plan(settings, kafka):
    options = kafka.options | {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "someone",
        "sasl.password": "canary-7f3a",
        "nonsense": "canary-7f3b",
    }
    planned = plan_run(pipeline("t"), settings, "run 1", connect=lambda _: options)
    assert "it has nonsense, and allowed are" in planned.reason
    written = json.dumps(planned.__dict__, default=str)
    assert "canary" not in written
