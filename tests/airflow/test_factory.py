"""A DAG per spec, with all that the spec says of it."""

from datetime import UTC, datetime, timedelta

import pytest

from tidegate.core.spec.pipeline import OWN_DAGS


def test_a_dag_is_what_its_spec_says(write_spec, dag_bag):
    write_spec(
        owner="sales",
        tags=["demo"],
        schedule="*/15 * * * *",
        start_date="2026-01-01",
        retries=5,
        retry_delay="2m",
        pool="drivers",
        spark_connection="my_spark",
        description="Orders as they land.",
    )
    dag = dag_bag().dags["p"]
    assert dag.tags == {"tidegate", "demo"}
    assert dag.owner == "sales"
    assert dag.start_date == datetime(2026, 1, 1, tzinfo=UTC)
    assert dag.catchup is False
    assert dag.max_active_runs == 1
    assert dag.description == "Orders as they land."
    submit = dag.get_task("submit")
    assert (submit.retries, submit.retry_delay) == (5, timedelta(minutes=2))
    assert submit.pool == "drivers"
    assert submit._conn_id == "my_spark"
    assert [task.task_id for task in dag.topological_sort()] == ["plan", "submit", "confirm"]


def test_the_docs_show_the_spec_as_written_and_no_value_of_the_environment(
    write_spec, dag_bag, monkeypatch
):
    monkeypatch.setenv("OWNER", "a-person")
    write_spec(owner="${OWNER}")
    dag = dag_bag().dags["p"]
    assert dag.owner == "a-person"
    assert "${OWNER}" in dag.doc_md
    assert "a-person" not in dag.doc_md


def test_a_later_layer_is_scheduled_by_the_asset_of_the_one_before(write_spec, dag_bag):
    from airflow.sdk import AssetAny

    from tidegate.airflow import pipeline_asset

    write_spec("bronze")
    write_spec("silver", after=["bronze"])
    dags = dag_bag().dags
    assert dags["bronze"].get_task("confirm").outlets == [pipeline_asset("bronze")]
    assert dags["silver"].timetable.asset_condition == AssetAny(pipeline_asset("bronze"))


def test_a_broken_spec_is_an_import_error_of_its_own(write_spec, deployment, dag_bag):
    write_spec("good")
    write_spec("worse", schedule="now and then")
    (deployment / "bad.yaml").write_text("name: bad\nsauce: {}\n")
    bag = dag_bag()
    assert set(bag.dags) - set(OWN_DAGS) == {"good"}
    [(file, error)] = bag.import_errors.items()
    assert file.endswith("spec_errors.py")
    for told in ("2 specs are refused", "bad.yaml", "sauce", "worse.yaml", "cron expression"):
        assert told in error


def test_good_specs_give_no_import_error(write_spec, dag_bag):
    write_spec()
    assert dag_bag().import_errors == {}


def test_a_task_builds_its_own_dag_alone(write_spec, deployment, monkeypatch):
    from airflow.sdk.definitions.context import AirflowParsingContext

    from tidegate.airflow import factory

    write_spec("mine")
    write_spec("other")
    context = AirflowParsingContext(dag_id="mine", task_id="plan")
    monkeypatch.setattr(factory, "get_parsing_context", lambda: context)
    assert list(factory.build_dags(deployment)) == ["mine"]


@pytest.mark.parametrize("name", ["pipelines.py", "spec_errors.py"])
def test_a_missing_folder_of_specs_is_told_once(deployment, dag_bag, name):
    deployment.rmdir()
    errors = dag_bag().import_errors
    assert len(errors) == 1
    assert "there is no such folder" in next(iter(errors.values()))


def test_every_dag_survives_serialization(write_spec, dag_bag):
    from airflow.serialization.serialized_objects import DagSerialization

    write_spec("bronze")
    write_spec("silver", after=["bronze"])
    for dag in dag_bag().dags.values():
        assert DagSerialization.to_dict(dag)["dag"]["dag_id"] == dag.dag_id


def test_a_spec_that_airflow_alone_refuses_stops_no_other(write_spec, dag_bag, monkeypatch):
    from tidegate.airflow import factory

    build = factory.build_dag

    def refuse_one(pipeline, settings, text):
        if pipeline.name == "refused":
            raise ValueError("Airflow says no")
        return build(pipeline, settings, text)

    monkeypatch.setattr(factory, "build_dag", refuse_one)
    write_spec("refused")
    write_spec("sound")
    bag = dag_bag()
    assert set(bag.dags) - set(OWN_DAGS) == {"sound"}
    (error,) = bag.import_errors.values()
    assert "refused.yaml has 1 mistake" in error
    assert "Airflow refuses it: Airflow says no" in error


@pytest.mark.parametrize(
    ("base", "path"), [("http://x:8080", ""), ("http://x:8080/airflow/", "/airflow")]
)
def test_the_docs_lead_to_the_pipeline_s_page(write_spec, dag_bag, monkeypatch, base, path):
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base)
    write_spec()
    assert f"]({path}/plugin/tidegate/p)" in dag_bag().dags["p"].doc_md
