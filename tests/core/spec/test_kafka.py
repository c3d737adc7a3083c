"""The Kafka source: what it takes, and what it refuses in words."""

import pytest

BASE = (
    "source: {type: kafka, topics: [orders], max_offsets_per_trigger: 10, value: {format: string}}"
)


def source(
    more="",
    *,
    topics="topics: [orders]",
    limit="max_offsets_per_trigger: 10",
    value="value: {format: string}",
):
    parts = [part for part in ("type: kafka", topics, limit, value, more) if part]
    return "source: {" + ", ".join(parts) + "}"


@pytest.mark.parametrize(
    "text",
    [
        BASE,
        source(topics='topic_pattern: "^orders-.*"'),
        source(topics="partitions: {orders: [0, 1], other.topic: [3]}"),
        source("starting: latest"),
        source("starting_offsets: {orders: {0: 5, 1: 0}}"),
        source("starting_offsets: {a: {0: 5}}", topics="partitions: {a: [0, 1], b: [0]}"),
        source("starting_offsets: {orders-a: {0: 5}}", topics='topic_pattern: "^orders"'),
        source("starting_timestamp: 2026-01-01"),
        source("min_offsets_per_trigger: 5, max_trigger_delay: 1h"),
        source("fail_on_data_loss: false, isolation: read_uncommitted, group_prefix: etl"),
        source("key: string, headers: true, provenance: false, min_partitions: 8"),
        source("options: {kafka.max.partition.fetch.bytes: 100}"),
        source(value='value: {format: json, schema: "id long", on_unknown: evolve}'),
        source(value="value: {format: avro, schema_file: schemas/order.avsc}"),
        source(value="value: {format: avro, registry: schemas}"),
        source(value='value: {format: csv, schema: "id long", on_malformed: fail}'),
    ],
)
def test_a_source_may_say(write, parse, text):
    assert parse(write(source=text)).source.type == "kafka"


JSON = 'value: {format: json, schema: "id long", '


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (source(limit=""), "source.max_offsets_per_trigger (line 2): is required and missing"),
        (source(topics=""), "needs exactly one of topics, topic_pattern and partitions"),
        (source("topic_pattern: x"), "needs exactly one of topics, topic_pattern and partitions"),
        (source(topics='topic_pattern: "["'), "must be a regular expression: unterminated"),
        (source(topics="topics: [a b]"), "must be letters, digits and . _ -, at most 249"),
        (source(topics="topics: []"), "must have at least one item"),
        (source("starting: middle"), "Input should be 'earliest' or 'latest'; found 'middle'"),
        (source("starting: latest, starting_timestamp: 2026-01-01"), "takes one of starting, "),
        (source("starting_offsets: {orders: {0: -1}}"), "greater than or equal to 0"),
        (source("min_offsets_per_trigger: 5"), "and max_trigger_delay go together"),
        (source("options: {kafka.enable.auto.commit: true}"), "the checkpoint keeps the position"),
        (source("options: {kafka.group.id: x}"), "must not hold kafka.group.id; the spec has"),
        (source("options: {kafka.sasl.jaas.config: x}"), "would hold a secret"),
        (
            source("options: {kafka.ssl.keystore.key: x}"),
            "kafka.ssl.keystore.key belongs to the con",
        ),
        (source("options: {Kafka.Security.protocol: x}"), "Kafka.Security.protocol belongs to the"),
        (
            source("starting_offsets: {order: {0: 5}}"),
            "starting_offsets names order, which the source does not read",
        ),
        (
            source("starting_offsets: {shop: {0: 5}}", topics='topic_pattern: "^orders"'),
            "starting_offsets names shop, which the source does not read",
        ),
        (
            source("starting_offsets: {a: {0: 5, 2: 1}}", topics="partitions: {a: [0, 1]}"),
            "starting_offsets names a-2, which partitions leaves out",
        ),
        (source("connection: a-b"), "must be letters, digits and _, at most 100"),
        (source(value=""), "source.value (line 2): is required and missing"),
        (source(value="value: {format: xml}"), "found 'xml'"),
        (source(value="value: {format: json}"), "format json needs a schema"),
        (source(value='value: {format: string, schema: "id long"}'), "so schema must go"),
        (source(value="value: {format: string, on_unknown: drop}"), "so on_unknown must go"),
        (source(value="value: {format: avro}"), "needs exactly one of schema_file and registry"),
        (
            source(value='value: {format: csv, schema: "a int", options: {MODE: FAILFAST}}'),
            "options must not hold MODE: on_malformed says what becomes of values",
        ),
        (source(value="value: {format: protobuf}"), "format protobuf needs exactly one of"),
        (
            source(value="value: {format: avro, registry: r, message: M}"),
            "format avro has no messages, so message must go",
        ),
        (
            source(value="value: {format: protobuf, registry: r, message: a-b}"),
            "must be a message's name, such as shop.Order",
        ),
        (source(value="value: {format: string, registry: r}"), "needs neither schema_file nor reg"),
        (
            source(value="value: {format: avro, schema_file: ../x}"),
            "must be a path below the specs",
        ),
        (
            source(topics="topics: [a, b]", value="value: {format: avro, registry: r}"),
            "value.subject is required where more than one topic is read",
        ),
        (source(value=JSON + "nope: 1}"), "source.value.nope (line 2): unknown key; allowed are"),
        (
            source(value=JSON + "nope: 1}"),
            "allowed are format, message, on_malformed, on_unknown, options, reg",
        ),
        (
            source("key: string", value='value: {format: json, schema: "key long, _offset long"}'),
            "value.schema must not name _offset, key: tidegate adds it",
        ),
    ],
)
def test_a_source_that_cannot_be_right_is_told(write, problem_of, text, problem):
    assert problem in problem_of(write(source=text))


@pytest.mark.parametrize("topics", ["topics: 5", "topics: orders", "partitions: {orders: 5}"])
def test_a_source_that_is_wrong_in_itself_is_told_once(write, problem_of, topics):
    text = source("starting_offsets: {orders: {0: 5}}", topics=topics)
    sink = "[{type: kafka, topic: orders, connection: elsewhere}]"
    assert "must be a list" in problem_of(write(source=text, sinks=sink))


def test_a_pipeline_must_not_send_to_the_topic_it_reads(write, problem_of):
    text = write(source=BASE, sinks="[{type: kafka, topic: orders}]")
    assert "must not write to the topic it reads" in problem_of(text)


def test_a_topic_of_the_same_name_on_another_cluster_is_another_topic(write, parse):
    sink = "[{type: kafka, topic: orders, connection: elsewhere}]"
    assert parse(write(source=BASE, sinks=sink)).sinks[0].topic == "orders"
    pattern = source(topics='topic_pattern: "^or"')
    assert parse(write(source=pattern, sinks=sink)).sinks[0].topic == "orders"


@pytest.mark.parametrize("key", ["kafka.ssl.keystore.key", "kafka.sasl.mechanism"])
def test_a_sink_s_options_do_not_say_how_to_reach_the_cluster(write, problem_of, key):
    told = problem_of(write(sinks=f"[{{type: kafka, topic: t, options: {{{key}: canary}}}}]"))
    assert f"{key} belongs to the connection" in told
    assert "canary" not in told


def test_a_pipeline_names_the_connections_it_needs(write, parse):
    text = write(source=BASE, sinks="[{type: kafka, topic: other, connection: elsewhere}]")
    assert parse(text).connections == ("kafka_default", "elsewhere")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{format: json, schema: "id long"}', True),
        ('{format: json, schema: "id long", on_malformed: fail}', False),
        ("{format: string}", True),
    ],
)
def test_a_pipeline_knows_whether_it_puts_values_aside(write, parse, value, expected):
    pipeline = parse(write(source=source(value=f"value: {value}")))
    assert pipeline.quarantines is expected
    assert pipeline.quarantine_sink.table == f"quarantine/{pipeline.name}"


def test_a_pattern_must_not_match_the_topic_that_is_written(write, problem_of):
    text = write(source=source(topics='topic_pattern: "^or"'), sinks="[{type: kafka, topic: orx}]")
    assert "must not write to the topic it reads" in problem_of(text)
