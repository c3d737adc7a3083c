"""Alerts by mail: a real Airflow, its own notifier, a real mail server."""

from pathlib import Path

import pytest

from tests.mail import MailServer
from tidegate.core.alerts.incident import Incidents

OPS = '[{"type": "smtp", "to": ["ops@example.com"]}]'


@pytest.fixture(scope="module")
def server():
    server = MailServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def mail(server, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", server.connection)
    monkeypatch.setenv("TIDEGATE_NOTIFY", OPS)
    server.mails.clear()
    server.refuses = False
    return server


@pytest.fixture
def run_dag(dag_bag):
    """Run a DAG of the repository, each task once, and return how it ended."""

    def run(name: str) -> str:
        dag = dag_bag().dags[name]
        for task in dag.tasks:
            task.retries = 0
        return str(dag.test().state)

    return run


def test_a_failed_run_is_mailed_once_and_once_more_when_it_is_over(
    write_spec, mail, run_dag, settings
):
    write_spec()
    assert run_dag("p") == "failed"
    assert mail.subjects == ["[tidegate] p: run failed"]
    (first,) = mail.mails
    assert (first["To"], first["From"]) == ("ops@example.com", "tidegate@example.com")
    text = first.get_body(("html",)).get_content()
    assert "does not exist. Create the folder" in text
    assert "/dags/p/runs/" in text
    assert "/tasks/plan" in text

    assert run_dag("alerts") == "success"
    assert len(mail.mails) == 1
    assert len(Incidents.beside(settings.state_of("p")).list_open()) == 1

    Path(settings.data, "landing").mkdir(parents=True)
    assert run_dag("p") == "success"  # idle, without a JVM
    assert run_dag("alerts") == "success"
    assert run_dag("alerts") == "success"
    assert mail.subjects[1:] == ["[tidegate] p: over: run failed"]
    assert "This is over. It was: " in mail.mails[1].get_body(("html",)).get_content()
    assert Incidents.beside(settings.state_of("p")).list_open() == ()


def test_a_mail_that_the_server_refuses_is_sent_again(write_spec, mail, run_dag):
    write_spec()
    mail.refuses = True
    assert run_dag("p") == "failed"
    assert run_dag("alerts") == "failed"
    mail.refuses = False
    assert run_dag("alerts") == "success"
    assert run_dag("alerts") == "success"
    assert mail.subjects == ["[tidegate] p: run failed"]


def test_a_spec_that_is_refused_is_mailed(deployment, mail, run_dag):
    (deployment / "bad.yaml").write_text("name: bad\nsauce: {}\n")
    assert run_dag("alerts") == "success"
    assert mail.subjects == ["[tidegate] bad: run failed"]
    assert "sauce" in mail.mails[0].get_body(("html",)).get_content()


def test_where_nobody_is_to_be_told_the_incident_is_kept_all_the_same(
    write_spec, mail, run_dag, settings
):
    write_spec(alerts={"notify": []})
    assert run_dag("p") == "failed"
    assert mail.mails == []
    (kept,) = Incidents.beside(settings.state_of("p")).list_open()
    assert kept.untold == ()


@pytest.mark.parametrize(
    ("given", "summary"),
    [("", "*/5 * * * *"), ("@hourly", "0 * * * *"), ("off", "None")],
)
def test_how_often_is_a_setting(deployment, dag_bag, monkeypatch, given, summary):
    monkeypatch.setenv("TIDEGATE_ALERTS_SCHEDULE", given)
    dag = dag_bag().dags["alerts"]
    assert str(dag.schedule if given == "off" else dag.timetable.expression) == summary
    assert dag.is_paused_upon_creation is False
