from pathlib import Path

import pytest

from tidegate.core.connection import KafkaConnection
from tidegate.core.database import DatabaseConnection
from tidegate.core.ledger import BatchRecord, SinkRecord
from tidegate.core.lineage import (
    Column,
    Dataset,
    Surveyor,
    name_location,
    name_table,
    name_topic,
)
from tidegate.core.settings import Settings
from tidegate.core.spec import Pipeline

FILES = {
    "type": "files",
    "path": "landing",
    "format": "json",
    "schema": "id long",
    "max_files_per_trigger": 1,
}
KAFKA = {
    "type": "kafka",
    "max_offsets_per_trigger": 1,
    "value": {"format": "json", "schema": "id long, at timestamp"},
}
CONNECTIONS = {
    "kafka_default": {"bootstrap.servers": "broker:9092,other:9092"},
    "warehouse": {"host": "db", "dbname": "sales", "user": "etl", "password": "canary"},
}


@pytest.fixture
def survey(settings):
    """Find what a pipeline reads and writes."""

    def find(batches=(), **spec):
        pipeline = Pipeline.model_validate({"name": "p"} | spec)
        return Surveyor(pipeline, settings, CONNECTIONS.__getitem__).survey(batches)

    return find


def names(datasets):
    return [(dataset.namespace, dataset.name) for dataset in datasets]


@pytest.mark.parametrize(
    ("url", "namespace", "name"),
    [
        ("file:/lake/bronze/orders", "file", "/lake/bronze/orders"),
        ("file:/lake/bronze/orders/", "file", "/lake/bronze/orders"),
        ("s3a://lake/bronze/orders", "s3://lake", "bronze/orders"),
        ("s3://lake", "s3://lake", "/"),
        ("gs://lake/orders/", "gs://lake", "orders"),
        (
            "abfss://c@s.dfs.core.windows.net/orders",
            "abfss://c@s.dfs.core.windows.net",
            "orders",
        ),
        ("hdfs://name:8020/lake/orders", "hdfs://name:8020", "/lake/orders"),
    ],
)
def test_locations_are_named_as_openlineage_does(url, namespace, name):
    assert name_location(url) == Dataset(namespace, name)


@pytest.mark.parametrize(
    ("servers", "namespace"),
    [
        ("broker:9093", "kafka://broker:9093"),
        ("a:9092,b:9092", "kafka://a:9092"),
        ("broker", "kafka://broker:9092"),
        ("SASL_SSL://broker:9094", "kafka://broker:9094"),
    ],
)
def test_topics_are_named_by_the_first_server(servers, namespace):
    connection = KafkaConnection("c", {"bootstrap.servers": servers})
    assert name_topic(connection, "orders") == Dataset(namespace, "orders")


@pytest.mark.parametrize(
    ("options", "table", "expected"),
    [
        ({}, "orders", Dataset("postgres://db:5432", "sales.public.orders")),
        ({"port": "5433"}, "mart.orders", Dataset("postgres://db:5433", "sales.mart.orders")),
        ({"host": "a,b", "port": "1,2"}, "t", Dataset("postgres://a:1", "sales.public.t")),
    ],
)
def test_tables_of_a_database_are_named_without_what_is_secret(options, table, expected):
    connection = DatabaseConnection("c", CONNECTIONS["warehouse"] | options)
    assert name_table(connection, table) == expected


def test_every_kind_of_source_and_sink_is_found(survey, settings):
    found = survey(
        sources={
            "clicks": KAFKA | {"topics": ["b", "a"]},
            "some": KAFKA | {"partitions": {"c": [0]}},
            "drops": FILES,
            "rows": {"type": "delta", "table": "bronze/orders", "max_files_per_trigger": 1},
            "made_up": {"type": "rate", "rows_per_batch": 1},
        },
        tables={"people": {"type": "delta", "table": "memory://lake/people"}},
        transform={"sql": "SELECT 1"},
        sinks=[
            {"type": "delta", "table": "silver/orders"},
            {"type": "jdbc", "name": "db", "connection": "warehouse", "table": "orders"},
            {"type": "kafka", "name": "out", "topic": "done"},
            {"type": "files", "name": "copies", "path": "copies", "format": "parquet"},
            {"type": "python", "name": "call", "function": "a:b"},
        ],
    )
    assert names(found.inputs) == [
        ("kafka://broker:9092", "a"),
        ("kafka://broker:9092", "b"),
        ("kafka://broker:9092", "c"),
        ("file", f"{settings.data}/landing"),
        ("file", f"{settings.data}/bronze/orders"),
        ("memory://lake", "/people"),
    ]
    assert names(found.outputs) == [
        ("file", f"{settings.data}/silver/orders"),
        ("postgres://db:5432", "sales.public.orders"),
        ("kafka://broker:9092", "done"),
        ("file", f"{settings.data}/copies"),
    ]
    assert found.inputs[0].columns == (Column("id"), Column("at"))
    assert "canary" not in str(found)


def test_what_one_pipeline_writes_is_what_the_next_one_reads(survey):
    bronze = survey(source=FILES, sinks=[{"type": "delta", "table": "bronze/orders"}])
    silver = survey(
        source={"type": "delta", "table": "bronze/orders", "max_files_per_trigger": 1},
        sinks=[{"type": "delta", "table": "silver/orders"}],
    )
    assert bronze.outputs == silver.inputs


def test_topics_of_a_pattern_are_those_that_were_read(survey, checkpoint_of):
    checkpoint_of("p").batch(0, {"orders-eu": {"0": 4}, "orders-us": {"0": 2}})
    found = survey(
        source=KAFKA | {"topic_pattern": "orders-.*"}, sinks=[{"type": "delta", "table": "t"}]
    )
    assert [topic.name for topic in found.inputs] == ["orders-eu", "orders-us"]


def test_a_table_s_columns_and_what_a_run_wrote_to_it_are_told(survey, settings):
    import pyarrow as pa
    from deltalake import write_deltalake

    table = Path(settings.data) / "t"
    write_deltalake(table, pa.table({"id": [1], "tags": [["a"]]}))
    batches = [record_batch(0, rows=2, aside=1), record_batch(1, rows=3, aside=0)]
    found = survey(
        batches,
        source=FILES,
        expect=[{"name": "small", "check": "id < 9", "on_fail": "quarantine"}],
        sinks=[{"type": "delta", "table": "t"}],
    )
    written, aside = found.outputs
    assert written.columns == (Column("id", "long"), Column("tags", "array"))
    assert (written.rows, written.version) == (5, 1)
    assert (aside.name, aside.rows) == (f"{settings.data}/quarantine/p", 1)


def test_a_table_that_cannot_be_read_is_named_all_the_same(survey, settings):
    log = Path(settings.data) / "t" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("not JSON")
    found = survey(source=FILES, sinks=[{"type": "delta", "table": "t"}])
    assert found.outputs == (Dataset("file", f"{settings.data}/t"),)


def test_what_nobody_counted_is_not_told(survey):
    batches = [record_batch(0, rows=None), record_batch(1, rows=3)]
    found = survey(batches, source=FILES, sinks=[{"type": "delta", "table": "t"}])
    assert [written.rows for written in found.outputs] == [None]


def test_a_replay_reads_what_was_put_aside(settings: Settings):
    pipeline = Pipeline.model_validate(
        {"name": "p", "source": FILES, "sinks": [{"type": "delta", "table": "t"}]}
    )
    found = Surveyor(pipeline, settings, CONNECTIONS.__getitem__).survey_replay()
    assert names(found.inputs) == [("file", f"{settings.data}/quarantine/p")]
    assert names(found.outputs) == [("file", f"{settings.data}/t")]


def record_batch(batch_id, *, rows, aside=0):
    return BatchRecord(
        batch_id=batch_id,
        run_id="r",
        input_rows=rows,
        seconds=1.0,
        committed_at="2026-01-01T00:00:00+00:00",
        sources=[],
        sinks={"main": SinkRecord(rows=rows, version=batch_id)},
        quarantined=aside,
    )
