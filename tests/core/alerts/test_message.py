"""What somebody reads."""

from dataclasses import replace

from tidegate.core.alerts.alert import Alert
from tidegate.core.alerts.incident import Incident
from tidegate.core.alerts.message import Message, name_rule
from tidegate.core.doctor.fault import Severity
from tidegate.core.spec.alerts import Rule

LINK = "http://airflow/dags/p/runs/1?a=1&b=2"
ALERT = Alert(Rule.FAILED_RUN, Severity.ERROR, "It <failed>.", "Mend {{ it }}.", run_id="run 1")
OPEN = Incident(ALERT, "2026-06-01T12:00:00.000+00:00")


def test_an_opening_tells_fact_remedy_since_when_and_where_to_look():
    message = Message.of("p", OPEN, LINK)
    assert message.subject == "[tidegate] p: run failed"
    assert message.text == (
        "It <failed>.\nMend {{ it }}.\n\npipeline: p\nrule: failed_run\n"
        f"since: 2026-06-01 12:00:00 UTC\nrun: run 1\nsee: {LINK}"
    )


def test_an_ending_tells_how_long_it_was():
    message = Message.of("p", replace(OPEN, over_at="2026-06-01T13:30:00.000+00:00"))
    assert message.subject == "[tidegate] p: over: run failed"
    assert message.text.startswith("This is over. It was: It <failed>.\n\npipeline: p")
    assert "over: 2026-06-01 13:30:00 UTC, after 1.5 h" in message.text


def test_what_is_told_is_no_markup_of_ours():
    html = Message.of("p", OPEN, LINK).html
    assert "It &lt;failed&gt;." in html
    assert '<a href="http://airflow/dags/p/runs/1?a=1&amp;b=2">' in html


def test_the_link_of_the_alert_itself_is_the_better_one():
    alert = replace(ALERT, link="http://airflow/log")
    assert "see: http://airflow/log" in Message.of("p", replace(OPEN, alert=alert), LINK).text


def test_every_rule_has_a_name():
    assert len({name_rule(rule) for rule in Rule}) == len(Rule)
