"""The forms: what they offer, and what they refuse at once."""

import pytest
from airflow.sdk.definitions.param import ParamValidationError

from tidegate.core.backfill.request import Request


@pytest.fixture
def forms(write_spec, dag_bag):
    write_spec("one")
    write_spec("two")
    bag = dag_bag()
    assert not bag.import_errors
    return bag.dags


def test_it_has_a_field_for_all_that_can_be_asked(forms):
    assert set(forms["backfill"].params) == {*Request.model_fields, "dry_run"}
    assert forms["backfill"].params.get_param("pipeline").schema["enum"] == ["one", "two"]
    assert forms["replay"].params.get_param("pipeline").schema["enum"] == ["one", "two"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("pipeline", "three"), ("mode", "destroy"), ("slices", 0), ("parallelism", 65)],
)
def test_what_can_never_be_is_refused_before_a_run_begins(forms, field, value):
    with pytest.raises(ParamValidationError):
        forms["backfill"].params.get_param(field).resolve(value)


def test_a_dry_run_is_what_one_gets_unless_asked_otherwise(forms):
    assert forms["backfill"].params["dry_run"] is True


def test_its_name_is_taken(write_spec, dag_bag):
    write_spec("backfill")
    bag = dag_bag()
    assert bag.dags["backfill"].schedule is None
    (told,) = bag.import_errors.values()
    assert "name must not be one of alerts, backfill, maintenance, replay" in told
