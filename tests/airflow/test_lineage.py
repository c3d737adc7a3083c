"""Lineage as it is emitted: real runs, and the events that a lineage server or a file was given."""

import json
import os
import stat
import subprocess
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Self

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN_DAG = """
from airflow.dag_processing.dagbag import DagBag
run = DagBag({dags!r}, load_op_links=False).dags["p"].test()
raise SystemExit(0 if str(run.state) == "success" else 1)
"""


class LineageServer:
    """Takes events as a lineage server does, with the key that each came with."""

    def __init__(self) -> None:
        self.events: list[dict] = []
        self.keys: set[str | None] = set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.events.append(json.loads(body))
                outer.keys.add(self.headers["Authorization"])
                self.send_response(HTTPStatus.CREATED)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def run_with_lineage(database, deployment):
    """Run the DAG p where lineage is kept, and return its log."""

    def run(**transport):
        # The listener is there from the start of a process or not at all, and others are not to pay for it.
        done = subprocess.run(
            [sys.executable, "-c", RUN_DAG.format(dags=str(ROOT / "dags"))],
            env=os.environ
            | {
                "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
                "AIRFLOW__OPENLINEAGE__NAMESPACE": "tests",
                "NO_PROXY": "127.0.0.1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        log = done.stdout + done.stderr
        assert done.returncode == 0, log
        return log

    return run


def test_files_to_delta_is_one_connected_run_under_the_task(write_spec, settings, run_with_lineage):
    write_spec()
    landing = Path(settings.data) / "landing"
    landing.mkdir(parents=True)
    (landing / "a.json").write_text('{"id": 1}\n{"id": 2}\n')
    (landing / "b.json").write_text('{"id": 3}\n')
    auth = {"type": "api_key", "api_key": "canary"}
    with LineageServer() as server:
        log = run_with_lineage(type="http", url=server.url, auth=auth)
    events = server.events

    read, written = ("file", str(landing)), ("file", f"{settings.data}/out/p")
    (task,) = [event for event in find_events(events, "p.submit") if is_done(event)]
    assert names(task["inputs"]) == [read]
    assert names(task["outputs"]) == [written]
    (output,) = task["outputs"]
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 3
    assert output["facets"]["version"]["datasetVersion"] == "1"
    fields = {field["name"]: field["type"] for field in output["facets"]["schema"]["fields"]}
    assert fields["id"] == "long"
    dag = task["run"]["facets"]["parent"]
    assert (dag["job"]["namespace"], dag["job"]["name"]) == ("tests", "p")

    assert_joined(events, task, read, written)

    assert server.keys == {"Bearer canary"}
    assert "Spark-Submit cmd" in log
    assert "canary" not in log


@pytest.mark.slow
@pytest.mark.kafka
def test_kafka_to_delta_is_one_connected_run_under_the_task(
    write_spec, settings, kafka, run_with_lineage, monkeypatch, tmp_path
):
    connection = {"conn_type": "kafka", "extra": kafka.options}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
    topic = kafka.create()
    kafka.produce(topic, [b'{"id": 1}', b'{"id": 2}'])
    write_spec(
        source={
            "type": "kafka",
            "topics": [topic],
            "starting": "earliest",
            "max_offsets_per_trigger": 10,
            "value": {"format": "json", "schema": "id long"},
        }
    )
    told = tmp_path / "events.jsonl"
    run_with_lineage(type="file", log_file_path=str(told), append=True)
    events = [json.loads(line) for line in told.read_text().splitlines()]

    server = kafka.options["bootstrap.servers"].partition(",")[0]
    read, written = (f"kafka://{server}", topic), ("file", f"{settings.data}/out/p")
    (task,) = [event for event in find_events(events, "p.submit") if is_done(event)]
    assert (names(task["inputs"]), names(task["outputs"])) == ([read], [written])
    assert_joined(events, task, read, written)


def assert_joined(events, task, read, written):
    """All that Spark tells hangs below the task, and names what is read and written as the task does."""
    spark = [event for event in events if event["job"]["name"].startswith("tidegate_p")]
    tree = {event["run"]["runId"]: find_parent(event) for event in spark}
    assert {find_root(tree, run_id) for run_id in tree} == {task["run"]["runId"]}
    assert read in [name for event in spark for name in names(event["inputs"])]
    assert written in [name for event in spark for name in names(event["outputs"])]
    assert not [
        event for event in spark if set(names(event["inputs"])) & set(names(event["outputs"]))
    ]


def find_events(events, job):
    return [event for event in events if event["job"]["name"] == job]


def is_done(event):
    return event["eventType"] == "COMPLETE"


def names(datasets):
    return [(dataset["namespace"], dataset["name"]) for dataset in datasets]


def find_parent(event):
    return event["run"]["facets"]["parent"]["run"]["runId"]


def find_root(tree, run_id):
    while run_id in tree:
        run_id = tree[run_id]
    return run_id


def test_the_way_to_a_lineage_server_is_left_in_a_file_and_not_on_the_command_line(monkeypatch):
    from tidegate.airflow.lineage import leave_transport

    transport = {
        "type": "composite",
        "transports": {
            "server": {
                "type": "http",
                "url": "https://lineage.example",
                "timeout": 2.5,
                "auth": {"type": "api_key", "api_key": "canary"},
                "custom_headers": {"team": "sales"},
            },
            "file": {"type": "file", "log_file_path": "/var/events", "append": True},
        },
    }
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps(transport))
    with leave_transport() as left:
        file = Path(left["OPENLINEAGE_CONFIG"])
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        told = json.loads(file.read_text())["transport"]["transports"]
        assert "canary" not in json.dumps(left)
    assert not file.exists()
    assert told["server"] == {
        "type": "http",
        "url": "https://lineage.example",
        "timeoutInMillis": 2500,
        "auth": {"type": "api_key", "apiKey": "canary"},
        "headers": {"team": "sales"},
    }
    assert told["file"]["location"] == "/var/events"


def test_what_a_driver_finds_in_its_variables_is_not_left():
    from tidegate.airflow.lineage import leave_transport

    with leave_transport() as left:
        assert left == {}


def test_a_lineage_that_is_not_set_up_is_not_kept(write_spec, dag_bag, monkeypatch):
    from tidegate.airflow.lineage import is_lineage_kept

    write_spec()
    submit = dag_bag().dags["p"].get_task("submit")
    assert not is_lineage_kept(submit)
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", '{"type": "console"}')
    assert is_lineage_kept(submit)
    policy = [{"scope": {"dag_id": "p"}, "controls": {"emit": False}}]
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__EMISSION_POLICY", json.dumps(policy))
    assert not is_lineage_kept(submit)
    monkeypatch.delenv("AIRFLOW__OPENLINEAGE__EMISSION_POLICY")
    monkeypatch.setitem(sys.modules, "airflow.providers.openlineage.conf", None)
    assert not is_lineage_kept(submit)


def test_a_driver_goes_on_where_lineage_cannot_be_kept(write_spec, dag_bag, monkeypatch):
    from contextlib import ExitStack

    write_spec()
    submit = dag_bag().dags["p"].get_task("submit")
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_PATH", "/nowhere/openlineage.yml")
    with ExitStack() as held:
        assert submit._join_lineage({}, submit.settings, held) == {}
    assert "spark.extraListeners" not in submit.conf


def test_no_key_goes_into_spark_s_configuration_whatever_airflow_is_told(
    write_spec, dag_bag, monkeypatch
):
    write_spec()
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__SPARK_INJECT_TRANSPORT_INFO", "True")
    assert not dag_bag().dags["p"].get_task("submit")._openlineage_inject_transport_info
