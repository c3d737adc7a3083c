"""Channels beside mail, by Airflow's own notifiers against real servers on loopback."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tidegate.core.alerts.alert import Alert
from tidegate.core.alerts.incident import Incident
from tidegate.core.alerts.message import Message
from tidegate.core.doctor.fault import Severity
from tidegate.core.errors import DeliveryError
from tidegate.core.spec.alerts import (
    AppriseChannel,
    PythonChannel,
    Rule,
    SlackChannel,
    SlackWebhookChannel,
)

FACT = "Value {{ 7 * 7 }} {% raw %} <b>."
INCIDENT = Incident(
    Alert(Rule.FAILED_RUN, Severity.ERROR, FACT, "Mend it.", run_id="manual__1+00:00"),
    "2026-06-01T12:00:00.000+00:00",
)
MESSAGE = Message.of("p", INCIDENT)


class Service(ThreadingHTTPServer):
    """Takes what is posted, and answers as Slack does."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Poster)
        self.posted = []
        self.refuses = False

    @property
    def place(self):
        return f"127.0.0.1:{self.server_port}"


class Poster(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.posted.append((self.path, json.loads(body)))
        is_hook = self.path.startswith("/hook")
        answer = b"ok" if is_hook else json.dumps({"ok": not self.server.refuses}).encode()
        self.send_response(500 if self.server.refuses else 200)
        self.send_header("Content-Type", "text/plain" if is_hook else "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass


@pytest.fixture
def service():
    server = Service()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def connect(monkeypatch):
    def add(name, **fields):
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(fields))

    return add


@pytest.fixture
def deliver(settings):
    from tidegate.airflow.notifier import Notifiers

    return lambda channel: Notifiers(settings).deliver(channel, MESSAGE)


def deliver_or_fail(deliver, service, channel):
    deliver(channel)
    service.refuses = True
    with pytest.raises(Exception):  # noqa: B017
        deliver(channel)


def test_slack_is_told_in_plain_words_and_a_refusal_is_an_error(deliver, service, connect):
    connect(
        "slack_api_default",
        conn_type="slack",
        password="xoxb-1",
        extra={"base_url": f"http://{service.place}/api/"},
    )
    deliver_or_fail(deliver, service, SlackChannel(type="slack", channel="#ops"))
    path, posted = service.posted[0]
    assert (path, posted["channel"]) == ("/api/chat.postMessage", "#ops")
    assert posted["text"].startswith(f"*[tidegate] p: run failed*\n{FACT}\nMend it.")


def test_a_webhook_of_slack_is_told_and_a_refusal_is_an_error(deliver, service, connect):
    connect("slack_default", conn_type="slackwebhook", password=f"http://{service.place}/hook")
    deliver_or_fail(deliver, service, SlackWebhookChannel(type="slack_webhook"))
    assert FACT in service.posted[0][1]["text"]


def test_apprise_tells_its_services_and_a_refusal_is_an_error(deliver, service, connect):
    config = [{"path": f"json://{service.place}/", "tag": "ops"}]
    connect("apprise_default", conn_type="apprise", extra={"config": config})
    deliver_or_fail(deliver, service, AppriseChannel(type="apprise", tag="ops"))
    assert service.posted[0][1]["title"] == "[tidegate] p: run failed"
    assert FACT in service.posted[0][1]["message"]


def test_a_tag_that_no_service_has_is_an_error(deliver, service, connect):
    config = [{"path": f"json://{service.place}/", "tag": "ops"}]
    connect("apprise_default", conn_type="apprise", extra={"config": config})
    with pytest.raises(DeliveryError, match="none has the tag 'others'"):
        deliver(AppriseChannel(type="apprise", tag="others"))


OWN = """
from airflow.sdk import BaseNotifier

told = []


class Mine(BaseNotifier):
    template_fields = ("text",)

    def __init__(self, text="{{ message.pipeline }}: {{ message.text }}"):
        super().__init__()
        self.text = text

    def notify(self, context):
        told.append(self.text)


mine = Mine()


def function(context):
    told.append(context["message"].subject)
"""


@pytest.mark.parametrize("name", ["Mine", "mine", "function"])
def test_a_notifier_of_one_s_own_is_told_each_time_anew(deliver, settings, name):
    settings.pipelines.mkdir()
    (settings.pipelines / "own_notifier.py").write_text(OWN)
    channel = PythonChannel(type="python", notifier=f"own_notifier:{name}")
    for _ in range(2):
        deliver(channel)
    import own_notifier

    told = MESSAGE.subject if name == "function" else f"p: {MESSAGE.text}"
    assert own_notifier.told == [told, told]


def test_a_notifier_that_is_not_there_is_told(deliver, settings):
    settings.pipelines.mkdir()
    with pytest.raises(DeliveryError, match=r"The notifier nowhere:it cannot be imported"):
        deliver(PythonChannel(type="python", notifier="nowhere:it"))


def test_a_provider_that_is_not_installed_is_told(deliver, monkeypatch):
    monkeypatch.setitem(sys.modules, "airflow.providers.slack.notifications.slack", None)
    with pytest.raises(DeliveryError, match=r"pip install 'tidegate\[slack\]'"):
        deliver(SlackChannel(type="slack", channel="#ops"))


@pytest.mark.parametrize(
    ("run_id", "path"),
    [
        ("manual__1+00:00", "/dags/p/runs/manual__1%2B00%3A00"),
        ("cli__1", "/dags/p"),
        (None, "/dags/p"),
    ],
)
def test_the_link_is_the_run_s_where_airflow_has_one(run_id, path, monkeypatch):
    from tidegate.airflow.notifier import find_link

    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.com/")
    alert = Alert(Rule.FAILED_RUN, Severity.ERROR, "x", "y", run_id=run_id)
    assert find_link("p", alert) == f"https://airflow.example.com{path}"
