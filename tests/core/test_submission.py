import sys
from pathlib import Path

import pytest

from tidegate.core.errors import SettingsError
from tidegate.core.settings import Settings
from tidegate.core.spec import DeltaSink, Pipeline, RateSource
from tidegate.core.spec.sinks.kafka import KafkaSink
from tidegate.core.submission import prepare_submission, require_jars

DELTA_JAR = "delta-spark_4.2_2.13-4.4.0.jar"


@pytest.fixture
def deployment(tmp_path):
    """Settings of a deployment that has no JARs yet."""
    return Settings.from_environment(tmp_path, {})


@pytest.fixture
def add_jars(deployment):
    """Put empty JARs into the deployment."""

    def add(*names):
        deployment.jars.mkdir(exist_ok=True)
        for name in names:
            (deployment.jars / name).parent.mkdir(exist_ok=True)
            (deployment.jars / name).touch()

    return add


def build_pipeline(**spark):
    return Pipeline(
        name="orders",
        source=RateSource(type="rate", rows_per_batch=1),
        sinks=(DeltaSink(type="delta", table="out"),),
        spark=spark,
    )


def test_the_driver_is_told_the_run_and_the_pipeline(deployment):
    submission = prepare_submission(build_pipeline(), deployment, "manual__2026-01-01T00:00:00")
    assert submission.application == str(deployment.home / "jobs" / "run_pipelines.py")
    assert submission.arguments == ("--run-id", "manual__2026-01-01T00:00:00", "orders")
    python = {"PYSPARK_PYTHON": sys.executable}
    assert submission.environment == deployment.to_environment() | python


def test_the_driver_that_is_submitted_is_in_the_repository():
    home = Path(__file__).parents[2]
    settings = Settings.from_environment(home, {})
    assert Path(prepare_submission(build_pipeline(), settings, "x").application).is_file()


def test_spark_is_set_up_for_delta(deployment):
    conf = prepare_submission(build_pipeline(), deployment, "x").conf
    assert conf["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"
    assert conf["spark.sql.catalog.spark_catalog"].endswith(".DeltaCatalog")


def test_all_jars_are_given_in_order_and_nothing_else(deployment, add_jars):
    add_jars("b.jar", DELTA_JAR, "a.jar", "notes.txt", "a.jar.sha256")
    jars = prepare_submission(build_pipeline(), deployment, "x").conf["spark.jars"]
    assert [Path(jar).name for jar in jars.split(",")] == ["a.jar", "b.jar", DELTA_JAR]
    assert all(Path(jar).is_absolute() for jar in jars.split(","))


def test_jars_of_lineage_are_not_given_unasked(deployment, add_jars):
    add_jars(DELTA_JAR, "lineage/openlineage-spark_2.13-1.53.0.jar")
    conf = prepare_submission(build_pipeline(), deployment, "x").conf
    assert conf["spark.jars"] == str(deployment.jars / DELTA_JAR)


def test_the_spec_has_the_last_word_on_spark_settings(deployment):
    pipeline = build_pipeline(**{"spark.log.level": "INFO", "spark.x": "1"})
    conf = prepare_submission(pipeline, deployment, "x").conf
    assert (conf["spark.log.level"], conf["spark.x"]) == ("INFO", "1")


def test_tasks_that_send_to_kafka_are_tried_once_whatever_the_spec_says(deployment):
    pipeline = build_pipeline(**{"spark.task.maxFailures": "9"})
    sink = KafkaSink(type="kafka", topic="t", name="out")
    sending = pipeline.model_copy(update={"sinks": (*pipeline.sinks, sink)})
    conf = prepare_submission(sending, deployment, "x").conf
    assert conf["spark.task.maxFailures"] == conf["spark.stage.maxConsecutiveAttempts"] == "1"
    assert conf["spark.speculation"] == "false"
    assert prepare_submission(pipeline, deployment, "x").conf["spark.task.maxFailures"] == "9"


def test_a_deployment_with_delta_is_ready(deployment, add_jars):
    add_jars(DELTA_JAR)
    require_jars(deployment)


@pytest.mark.parametrize("names", [None, (), ("delta-storage-4.4.0.jar", "delta-spark.txt")])
def test_a_deployment_without_delta_is_told_how_to_get_it(deployment, add_jars, names):
    if names is not None:
        add_jars(*names)
    with pytest.raises(SettingsError) as raised:
        require_jars(deployment)
    assert str(raised.value) == (
        f"There is no Delta JAR in {deployment.jars}. "
        "Run 'make jars', or set TIDEGATE_JARS to the folder that holds them."
    )
