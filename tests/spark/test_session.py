"""The session of a pipeline, and what one that remembers needs."""

import pytest

from tidegate.spark.session import open_session, tune_for_state

STATE = "spark.sql.streaming.stateStore"


@pytest.fixture
def tune(spark, pipeline_of):
    """Open the session of a pipeline that remembers, and read a setting of it."""

    def open_and_read(key, **conf):
        pipeline = pipeline_of({"type": "rate", "rows_per_batch": 1}, spark=conf)
        session = open_session(pipeline)
        tune_for_state(session, pipeline)
        return session.conf.get(key)

    return open_and_read


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (f"{STATE}.rocksdb.changelogCheckpointing.enabled", "true"),
        (f"{STATE}.maintenanceInterval", "2s"),
        ("spark.sql.adaptive.enabled", "false"),
        ("spark.sql.streaming.minBatchesToRetain", "100"),
    ],
)
def test_a_query_that_remembers_has_settings_of_its_own_unless_its_spec_has(tune, key, value):
    assert tune(key) == value
    other = {"true": "false", "false": "true", "2s": "9s", "100": "7"}[value]
    assert tune(key, **{key: other}) == other
