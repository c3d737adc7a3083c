"""One JVM for all tests of the driver's side."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tidegate.core.checkpoint.log import read_query_id
from tidegate.core.condition import Judgement, RunReached, judge
from tidegate.core.ledger import Ledger, Plan, Run
from tidegate.core.plan import plan_run
from tidegate.core.settings import Settings
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.submission import prepare_submission
from tidegate.spark.runner import run_pipeline

ROOT = Path(__file__).resolve().parents[2]
# Hundreds of queries in one JVM: room for them, and nothing kept of those that are over.
_LASTING = {
    # Where a test itself reads a table, Delta would take 50 tasks, each of which generates code anew.
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.driver.memory": "3g",
    "spark.ui.enabled": "false",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    pipeline = Pipeline.model_validate(
        {
            "name": "any",
            "source": {"type": "rate", "rows_per_batch": 1},
            "sinks": [{"type": "delta", "table": "any"}],
        }
    )
    submission = prepare_submission(pipeline, Settings.from_environment(ROOT, {}), "any")
    os.environ["PYSPARK_PYTHON"] = submission.environment["PYSPARK_PYTHON"]
    builder = SparkSession.builder.master("local[2]").config(map=submission.conf)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("JAVA_TOOL_OPTIONS")  # this one lives long enough for the second compiler
        session = builder.config(map=_LASTING).getOrCreate()
    yield session
    session.stop()


class Runs:
    """Plans and runs pipelines as their DAG would, in this process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._count = 0

    def plan(self, pipeline: Pipeline) -> Plan:
        self._count += 1
        return plan_run(pipeline, self.settings, f"run {self._count}")

    def run(self, pipeline: Pipeline) -> Run:
        """Plan, run, and insist that the target was reached."""
        plan = self.plan(pipeline)
        run_pipeline(pipeline, self.settings, plan.run_id)
        judgement = self.judge(pipeline, plan)
        assert judgement.verdict == "reached", judgement.reason
        return self.ledger(pipeline).read_run(plan.run_id)

    def judge(self, pipeline: Pipeline, plan: Plan) -> Judgement:
        checkpoint = self.settings.checkpoint_of(pipeline.name)
        return judge(checkpoint, [RunReached(plan.run_id)])

    def find_query_id(self, pipeline: Pipeline) -> str:
        """Find the id of a pipeline's query."""
        return read_query_id(self.settings.checkpoint_of(pipeline.name))

    def ledger(self, pipeline: Pipeline) -> Ledger:
        return Ledger.beside(self.settings.state_of(pipeline.name))


@pytest.fixture
def runs(spark: SparkSession, settings: Settings) -> Runs:
    return Runs(settings)


@pytest.fixture
def rows_of(spark: SparkSession, settings: Settings):
    """Read a Delta table's rows as tuples, in order."""

    def read(table: str, *columns: str) -> list[tuple]:
        frame = spark.read.format("delta").load(settings.locate_url(table))
        selected = frame.select(*columns) if columns else frame
        rows = (tuple(row) for row in selected.collect())
        return sorted(rows, key=lambda row: [(value is not None, value) for value in row])

    return read


@pytest.fixture
def pipeline_of():
    """Build a pipeline out of a source and whatever else matters."""

    def build(source: dict | None, **parts) -> Pipeline:
        sink = {"type": "delta", "table": "out"} | parts.pop("sink", {})
        parts = {"name": "p", "sinks": [sink]} | ({"source": source} if source else {}) | parts
        return Pipeline.model_validate(parts)

    return build
