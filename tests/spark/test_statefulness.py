"""What a query remembers, told by its plan."""

import pytest

from tidegate.spark.statefulness import is_stateful, joins_for_ever


@pytest.fixture
def stream(spark):
    """A stream of (timestamp, value), with a watermark or without."""

    def read(*, marked):
        rows = spark.readStream.format("rate").load()
        return rows.withWatermark("timestamp", "1 minute") if marked else rows

    return read


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [(False, False, True), (True, False, True), (False, True, True), (True, True, False)],
)
def test_a_join_of_streams_remembers_for_ever_unless_both_have_a_watermark(
    stream, one, other, expected
):
    joined = stream(marked=one).join(
        stream(marked=other).withColumnRenamed("value", "v"), how="inner"
    )
    assert is_stateful(joined)
    assert joins_for_ever(joined.where("value = v").select("value")) is expected


def test_a_join_with_a_static_table_remembers_nothing(spark, stream):
    joined = stream(marked=False).join(spark.range(3).withColumnRenamed("id", "value"), "value")
    assert not is_stateful(joined)
    assert not joins_for_ever(joined)
