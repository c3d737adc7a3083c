"""Alerts from a whole Airflow: its workers, its scheduler, a real mail server."""

import json
import time
from collections.abc import Callable

import pytest

from demo.api import AirflowApi
from tests.e2e.home import Home
from tests.mail import MailServer

pytestmark = [pytest.mark.airflow, pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

SPEC = {
    "name": "orders",
    "retries": 0,
    "source": {
        "type": "files",
        "path": "landing/none",
        "format": "text",
        "max_files_per_trigger": 1,
    },
    "sinks": [{"type": "delta", "table": "out/orders"}],
}


def await_so(is_so: Callable[[], bool], what: str, seconds: float = 180) -> float:
    """Wait until something is so, and return for how long."""
    began = time.monotonic()
    while not is_so():
        assert time.monotonic() - began < seconds, f"{what} within {seconds} s"
        time.sleep(0.2)
    return time.monotonic() - began


@pytest.fixture(scope="module")
def mail():
    server = MailServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("alerts"))
    for spec in (home.folder / "pipelines").glob("*.yaml"):
        spec.unlink()
    (home.folder / "pipelines" / "orders.yaml").write_text(json.dumps(SPEC))
    return home


@pytest.fixture(scope="module")
def api(home, mail):
    home.environment |= {
        "AIRFLOW_CONN_SMTP_DEFAULT": mail.connection,
        "TIDEGATE_NOTIFY": "[{type: smtp, to: [ops@example.com]}]",
        "TIDEGATE_ALERTS_SCHEDULE": "* * * * *",
    }
    try:
        home.run("demo.up")
        stack = json.loads((home.folder / "var" / "airflow" / "stack.json").read_text())
        with AirflowApi(stack["url"]) as api:
            yield api
    finally:
        home.run("demo.down")


def test_a_failed_run_is_mailed_by_its_task_and_its_end_by_the_dag_of_alerts(api, home, mail):
    await_so(lambda: {"orders", "alerts"} <= api.list_dags(), "both DAGs are there")
    run_id = api.trigger("orders")
    await_so(lambda: bool(mail.mails), "the failure is mailed")
    assert mail.subjects == ["[tidegate] orders: run failed"]
    text = mail.mails[0].get_body(("html",)).get_content()
    assert "does not exist. Create the folder" in text
    assert "/tasks/plan?try_number=1" in text
    await_so(lambda: api.read_run("orders", run_id).state == "failed", "the run has failed")

    def has_looked() -> bool:
        runs = [api.read_run("alerts", each) for each in api.list_runs("alerts")]
        return any(run.state == "success" for run in runs)

    await_so(has_looked, "the DAG of alerts, which nobody turned on, has looked")
    (home.data / "landing" / "none").mkdir(parents=True)
    api.trigger("orders")
    await_so(lambda: len(mail.mails) > 1, "the end is mailed")
    assert mail.subjects == ["[tidegate] orders: run failed", "[tidegate] orders: over: run failed"]
