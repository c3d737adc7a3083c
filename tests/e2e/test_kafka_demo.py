"""`make demo-kafka`: a broker of its own, and orders through it into the medallion."""

import re

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from demo.stream import ORDERS
from tests.e2e.home import Home

pytestmark = [
    pytest.mark.slow,
    pytest.mark.e2e,
    pytest.mark.airflow,
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.timeout(1200),
]


def test_orders_flow_from_kafka_to_gold_and_the_broker_is_stopped(tmp_path):
    home = Home(tmp_path)
    output = home.run("demo.stream")
    assert "3 runs, 2 of them started by asset events, 3 JVMs started" in output
    bronze, aside = home.read_table("stream/bronze"), home.read_table("quarantine/stream_bronze")
    assert len(bronze) + len(aside) == ORDERS
    assert len({(row["_partition"], row["_offset"]) for row in bronze}) == len(bronze)
    orders = {row["order_id"] for row in bronze if row["quantity"] > 0}
    assert orders == {row["order_id"] for row in home.read_table("stream/gold")}
    before, after = _read_lags(output)
    assert sum(before) == ORDERS
    assert sum(after) == 0
    address = re.search(r"Kafka is up at (\S+)", output)[1]
    with pytest.raises(KafkaException):
        AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=2)


def _read_lags(output: str) -> tuple[list[int], list[int]]:
    """Read the lag of each partition out of the two tables, the first and the last."""
    rows = [line.split() for line in output.splitlines() if line.strip().startswith("orders-")]
    lags = [int(row[3].replace(",", "")) for row in rows]
    assert lags, output
    return lags[: len(lags) // 2], lags[len(lags) // 2 :]
