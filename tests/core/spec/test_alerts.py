"""What a spec may say of alerts."""

import pytest
from pydantic import ValidationError

from tidegate.core.spec.alerts import Alerts
from tidegate.core.spec.pipeline import OWN_DAGS


def test_without_a_word_the_rules_are_good_ones():
    alerts = Alerts()
    assert (alerts.state_growth, alerts.late_rows, alerts.quarantine_share) == (0.1, 0, 0.05)
    assert (alerts.off, alerts.notify) == ((), None)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"lag_records": 0}, "greater than 0"),
        ({"lag_time": "soon"}, "a number and a unit"),
        ({"state_growth": 3}, "a share of the rows"),
        ({"late_rows": True}, "a whole number"),
        ({"late_rows": -1}, "greater than or equal to 0"),
        ({"off": ["nothing"]}, "failed_run"),
        ({"off": ["late_rows"], "late_rows": 5}, "late_rows is off and has a value"),
        ({"notify": [{"type": "smtp", "to": ["ops"]}]}, "a mail address"),
        ({"notify": [{"type": "smtp", "to": ["ops@x\nBcc: y@z"]}]}, "a mail address"),
        ({"notify": [{"type": "smtp", "to": []}]}, "at least 1 item"),
        ({"notify": [{"type": "fax"}]}, "smtp"),
        ({"notify": [{"type": "smtp", "to": ["a@b"], "password": "x"}]}, "password"),
        ({"lag": 5}, "lag"),
    ],
)
def test_mistakes_are_told(given, told):
    with pytest.raises(ValidationError, match=told):
        Alerts.model_validate(given)


@pytest.mark.parametrize("name", OWN_DAGS)
def test_a_pipeline_must_not_take_the_name_of_a_dag_that_there_is(problems_of, write, name):
    (problem,) = problems_of(write().replace("name: orders", f"name: {name}"))
    assert "the DAGs that tidegate brings" in problem
