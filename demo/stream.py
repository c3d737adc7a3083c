"""`make demo-kafka`: orders through Kafka into the medallion, with the lag falling."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console

from demo.broker import Broker, BrokerError
from demo.chain import Chain
from demo.data import make_order, write_customers
from demo.stack import StackError
from tidegate.cli.lag import render_lag
from tidegate.core.connection import ReadConnection
from tidegate.core.errors import TidegateError
from tidegate.core.lag import count_waiting, measure_lag
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import load_pipeline
from tidegate.core.spec.pipeline import Pipeline

CHAIN = ("stream_bronze", "stream_silver", "stream_gold")
TOPIC = "orders"
ORDERS = 20_000
_PARTITIONS = 4
_BROKEN_EVERY = 1000
_TIMEOUT_SECONDS = 60


def main() -> int:
    """Start a broker, produce orders, run the pipelines, and stop the broker."""
    console = Console()
    home = Settings.from_environment()
    settings = replace(home, pipelines=home.home / "demo" / "kafka")
    broker = Broker(home.home / "var" / "kafka", home.jars / "broker")
    try:
        with console.status("starting Kafka"):
            broker.start()
        console.print(f"Kafka is up at {broker.address}")
        return _run(settings, broker, console)
    except (BrokerError, StackError) as error:
        console.print(str(error), style="red", markup=False)
        return 1
    finally:
        broker.stop()
        console.print("Kafka is stopped; its data stays in var/kafka")


def _run(settings: Settings, broker: Broker, console: Console) -> int:
    write_customers(Path(settings.data))
    produced = produce_orders(broker, ORDERS)
    console.print(f"produced {produced:,} orders to the topic {TOPIC}, some of them broken")
    options = {"bootstrap.servers": broker.address}
    bronze = load_pipeline(settings.pipelines, CHAIN[0]).require()

    def connect(_name: str) -> Mapping[str, str]:
        return options

    def tell() -> str:
        return _tell_lag(bronze, settings, connect)

    connection = json.dumps({"conn_type": "kafka", "extra": options})
    chain = Chain(CHAIN, settings, console, {"AIRFLOW_CONN_KAFKA_DEFAULT": connection}, tell)
    console.print(render_lag(measure_lag(bronze, settings, connect)))
    began = time.monotonic()
    runs = chain.run()
    chain.print_result(runs, time.monotonic() - began)
    console.print(render_lag(measure_lag(bronze, settings, connect)))
    return 0 if all(run.state == "success" for run in runs) else 1


def _tell_lag(pipeline: Pipeline, settings: Settings, connect: ReadConnection) -> str:
    try:
        return f"{count_waiting(pipeline, settings, connect):,} records behind"
    except TidegateError as error:
        return str(error)


def produce_orders(broker: Broker, count: int) -> int:
    """Send orders to the topic, by customer, some of them broken; return how many were sent."""
    admin = AdminClient({"bootstrap.servers": broker.address})
    if TOPIC not in admin.list_topics(timeout=_TIMEOUT_SECONDS).topics:
        created = admin.create_topics([NewTopic(TOPIC, _PARTITIONS, 1)])
        created[TOPIC].result(_TIMEOUT_SECONDS)
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 50})
    for key, value in _make_records(count, first=int(time.time())):
        producer.produce(TOPIC, value, key=key)
        producer.poll(0)
    producer.flush(_TIMEOUT_SECONDS)
    return count


def _make_records(count: int, first: int) -> Iterator[tuple[str, str]]:
    chance = random.Random(first)
    for number in range(count):
        order = make_order(first * ORDERS + number, 0, chance)
        is_broken = number % _BROKEN_EVERY == 0
        value = '{"order_id": 17, "quan' if is_broken else json.dumps(order)
        yield str(order["customer_id"]), value


if __name__ == "__main__":
    sys.exit(main())
