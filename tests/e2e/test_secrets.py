"""A password that only Airflow's database has: it gets where it must, and nowhere else."""

import json
import os
import re
import secrets
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from confluent_kafka.admin import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from demo.api import AirflowApi, DagRun
from demo.broker import Broker, find_free_ports
from tests.e2e.home import read_table
from tests.kafka_cluster import Cluster
from tidegate.core.connection import HANDED_OVER

ROOT = Path(__file__).resolve().parents[2]
USER = "harmless-user"
PASSWORD = secrets.token_hex(16)
WRONG_PASSWORD = secrets.token_hex(16)
SECRETS = (PASSWORD.encode(), WRONG_PASSWORD.encode())
RECORDS = 3
# Where the search must find what is no secret, for its silence about passwords to mean something.
PLACES = (
    "var/airflow/airflow.db*",
    "var/airflow/standalone.log",
    "var/airflow/logs/dag_id=guarded/*/task_id=plan/attempt=1.log",
    "var/airflow/logs/dag_id=guarded/*/task_id=submit/attempt=1.log",
    "var/airflow/logs/dag_id=guarded/*/task_id=confirm/attempt=1.log",
    "var/airflow/logs/dag_id=mistyped/*/task_id=plan/attempt=1.log",
    "var/data/out/guarded/*.parquet",
    "var/data/out/guarded/_delta_log/*.json",
    "var/events/*/events_*",
    "var/state/guarded/checkpoint/offsets/0",
    "var/state/guarded/runs/*/plan.json",
    "var/state/mistyped/runs/latest.json",
)
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
_TIMEOUT_SECONDS = 300

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.airflow,
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.timeout(900),
]


class Home:
    """A deployment in a temporary folder, which holds all that its processes write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data, self.state = folder / "var" / "data", folder / "var" / "state"
        self.airflow, self.temporary = folder / "var" / "airflow", folder / "tmp"
        self.events = folder / "var" / "events"
        for name in ("dags", "jobs"):
            shutil.copytree(ROOT / name, folder / name)
        for made in (folder / "pipelines", self.temporary, self.events):
            made.mkdir(parents=True)
        inherited = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("AIRFLOW", "TIDEGATE"))
        }
        self.environment = inherited | {
            "TIDEGATE_HOME": str(folder),
            "TIDEGATE_JARS": str(ROOT / "jars"),
            "PYTHONPATH": str(ROOT),
            # So that what is left in temporary files is found as well.
            "TMPDIR": str(self.temporary),
            "SPARK_LOCAL_DIRS": str(self.temporary),
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={self.temporary}",
        }

    def run(self, module: str) -> None:
        result = subprocess.run(
            [sys.executable, "-m", module],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_SECONDS,
        )
        assert result.returncode == 0, result.stdout + result.stderr

    def read_stack(self) -> dict[str, Any]:
        return json.loads((self.airflow / "stack.json").read_text())

    def write_spec(self, name: str, topic: str) -> None:
        """Write a spec whose connection has its name; batches of one record keep the driver busy."""
        spec = {
            "name": name,
            "retries": 0,
            "source": {
                "type": "kafka",
                "connection": name,
                "topics": [topic],
                "max_offsets_per_trigger": 1,
                "value": {"format": "json", "schema": "id long"},
            },
            "sinks": [{"type": "delta", "table": f"out/{name}"}],
            "spark": {
                # What Spark's UI shows, as files; and nothing that hides from a search for bytes.
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": str(self.events),
                "spark.eventLog.compress": "false",
                "spark.sql.parquet.compression.codec": "uncompressed",
            },
        }
        (self.folder / "pipelines" / f"{name}.yaml").write_text(json.dumps(spec))  # JSON is YAML

    def find_files(self, *wanted: bytes) -> set[Path]:
        """Find the files that hold any of some bytes."""
        # Not by rglob, which fails when a folder goes away meanwhile.
        files = (Path(folder, name) for folder, _, names in os.walk(self.folder) for name in names)
        return {
            file.relative_to(self.folder)
            for file in files
            if (content := read_if_there(file)) and any(one in content for one in wanted)
        }


@dataclass(frozen=True)
class Process:
    """What everyone on a machine may see of a process."""

    number: int
    command: bytes
    environment: bytes = field(repr=False)  # a failed test must not print what else is in it

    @classmethod
    def look_at(cls, number: int) -> Self:
        folder = Path("/proc") / str(number)
        return cls(number, read_if_there(folder / "cmdline"), read_if_there(folder / "environ"))

    @property
    def is_driver(self) -> bool:
        # One that has just ended has no environment any more.
        is_spark = b"java\0" in self.command and b"SparkSubmit" in self.command
        return is_spark and bool(self.environment)

    def holds(self, *wanted: bytes) -> bool:
        return any(one in self.command or one in self.environment for one in wanted)

    def find_variable(self, name: str) -> str:
        found = re.search(rf"(?:^|\0){name}=([^\0]*)".encode(), self.environment)
        return found.group(1).decode() if found else ""


def read_if_there(file: Path) -> bytes:
    try:
        return file.read_bytes() if file.is_file() else b""
    except (FileNotFoundError, ProcessLookupError):
        return b""


def list_family(leader: int) -> list[Process]:
    """List a process and all that descend from it, by their parents or by their session."""
    kin = dict(list_kin())
    family = {number for number, (_, session) in kin.items() if session == leader}
    while more := {number for number, (parent, _) in kin.items() if parent in family} - family:
        family |= more
    return [Process.look_at(number) for number in family]


def list_kin() -> Iterator[tuple[int, tuple[int, int]]]:
    """List every process with its parent and session, and look no closer: most are not ours."""
    for folder in Path("/proc").glob("[0-9]*"):
        # The name before the last bracket may hold anything.
        fields = read_if_there(folder / "stat").rpartition(b")")[2].split()
        if fields:
            yield int(folder.name), (int(fields[1]), int(fields[3]))


@dataclass
class Watch:
    """Looks again and again at what could be seen while Airflow and its drivers work."""

    home: Home
    leader: int
    checkpoint: Path
    seen: set[Process] = field(default_factory=set)
    drivers: set[Process] = field(default_factory=set)
    """Drivers that were looked at after their query had planned a batch."""
    files: dict[Path, list[int]] = field(default_factory=dict)
    """Files that held a password, each with its mode and its folder's."""

    def look(self) -> None:
        is_working = (self.checkpoint / "offsets" / "0").exists()
        family = list_family(self.leader)
        self.seen |= set(family)
        if is_working:
            self.drivers |= {process for process in family if process.is_driver}
        for name in self.home.find_files(*SECRETS):
            self._note_modes(self.home.folder / name)

    def find(self, *wanted: bytes) -> list[Process]:
        return [process for process in self.seen if process.holds(*wanted)]

    def _note_modes(self, file: Path) -> None:
        with suppress(FileNotFoundError):  # the driver may have ended since
            self.files[file] = [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)]


@pytest.fixture(scope="module")
def secured(tmp_path_factory) -> Iterator[tuple[Cluster, str]]:
    """A broker with a listener that lets nobody in without a password, and that one's address."""
    broker = Broker(tmp_path_factory.mktemp("secured"), ROOT / "jars" / "broker")
    (port,) = find_free_ports(1)
    address = f"127.0.0.1:{port}"
    plain, controller = f"PLAINTEXT://{broker.address}", f"127.0.0.1:{broker.controller_port}"
    broker.settings = {
        "listeners": f"{plain},CONTROLLER://{controller},SASL_PLAINTEXT://{address}",
        "advertised.listeners": f"{plain},SASL_PLAINTEXT://{address}",
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
        ),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": f"{_SCRAM} required;",
    }
    broker.start()
    cluster = Cluster(broker)
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    user = UserScramCredentialUpsertion(USER, scram, PASSWORD.encode())
    cluster.admin.alter_user_scram_credentials([user])[USER].result(_TIMEOUT_SECONDS)
    yield cluster, address
    broker.stop()


@pytest.fixture(scope="module")
def topic(secured) -> str:
    cluster, _ = secured
    topic = cluster.create()
    cluster.produce(topic, [{"id": number} for number in range(RECORDS)])
    return topic


@pytest.fixture(scope="module")
def home(tmp_path_factory, topic) -> Iterator[Home]:
    home = Home(tmp_path_factory.mktemp("home"))
    for name in ("guarded", "mistyped"):
        home.write_spec(name, topic)
    try:
        home.run("demo.up")
        yield home
    finally:
        home.run("demo.down")


@pytest.fixture(scope="module")
def http(home) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=home.read_stack()["url"], timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def api(home, http, secured) -> Iterator[AirflowApi]:
    """Airflow, with the DAGs there and the connections in its database."""
    _, address = secured
    for name, password in (("guarded", PASSWORD), ("mistyped", WRONG_PASSWORD)):
        options = {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": USER,
            "sasl.password": password,
        }
        connection = {"connection_id": name, "conn_type": "kafka", "extra": json.dumps(options)}
        http.post("/api/v2/connections", json=connection).raise_for_status()
    api = AirflowApi(home.read_stack()["url"])
    await_so(lambda: {"guarded", "mistyped"} <= api.list_dags())
    yield api
    api._http.close()


def await_so(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def run_dag(api: AirflowApi, dag_id: str, watch: Watch) -> DagRun:
    run_id = api.trigger(dag_id)

    def is_finished() -> bool:
        watch.look()
        return api.read_run(dag_id, run_id).is_finished

    await_so(is_finished)
    return api.read_run(dag_id, run_id)


@pytest.fixture(scope="module")
def watch(home, api) -> Watch:
    leader = home.read_stack()["process_group"]
    return Watch(home, leader, home.state / "guarded" / "checkpoint")


@pytest.fixture(scope="module")
def guarded(api, watch) -> DagRun:
    """A run whose connection has the password."""
    return run_dag(api, "guarded", watch)


@pytest.fixture(scope="module")
def mistyped(api, watch) -> DagRun:
    """A run whose connection has a wrong password."""
    return run_dag(api, "mistyped", watch)


@pytest.fixture(scope="module")
def answers(http, guarded, mistyped) -> dict[str, bytes]:
    """All that Airflow's API answers about both runs, by address."""
    paths = http.get("/openapi.json").json()["paths"]
    readable = [path for path, methods in paths.items() if "get" in methods]
    found = {}
    for path, run, task in product(readable, (guarded, mistyped), ("plan", "submit", "confirm")):
        known = {
            "asset_id": "1",
            "connection_id": run.dag_id,
            "dag_id": run.dag_id,
            "dag_run_id": run.run_id,
            "map_index": "-1",
            "task_id": task,
            "task_try_number": "1",
            "try_number": "1",
            "xcom_key": "plan" if task == "plan" else "return_value",
        }
        try:
            address = path.format_map(known)
        except KeyError:
            continue  # about something that neither run has
        if address not in found:
            found[address] = http.get(address).content
    return found


def test_a_password_that_only_airflow_has_lets_plan_and_driver_in(home, api, guarded, watch):
    assert guarded.state == "success", api.read_log(guarded, "submit")
    assert set(guarded.tasks.values()) == {"success"}
    rows = read_table(home.data / "out" / "guarded")
    assert sorted(row["id"] for row in rows) == list(range(RECORDS))
    assert watch.find(b"AIRFLOW_CONN_SPARK_DEFAULT")
    assert watch.find(b"CONN_GUARDED", b"CONN_MISTYPED") == []
    with closing(sqlite3.connect(home.airflow / "airflow.db")) as database:
        encrypted = database.execute("SELECT conn_id, is_extra_encrypted FROM connection")
        assert sorted(encrypted) == [("guarded", True), ("mistyped", True)]


def test_a_wrong_password_blocks_the_run_in_words(api, mistyped):
    assert mistyped.tasks == {
        "plan": "failed",
        "submit": "upstream_failed",
        "confirm": "upstream_failed",
    }
    log = api.read_log(mistyped, "plan")
    assert "blocked: The cluster of the connection 'mistyped' refuses it" in log
    assert "Correct user, password, mechanism or certificates of the connection." in log


def test_a_working_driver_has_the_password_from_a_file_that_only_its_user_can_read(
    guarded, mistyped, watch
):
    assert watch.drivers
    assert all(guarded.run_id.encode() in driver.command for driver in watch.drivers)
    assert watch.find(*SECRETS) == []
    [file] = watch.files
    assert {driver.find_variable(HANDED_OVER) for driver in watch.drivers} == {str(file)}
    assert watch.files[file] == [0o600, 0o700]


def test_airflow_tells_everything_but_the_passwords(answers, guarded, mistyped):
    submit = f"/api/v2/dags/guarded/dagRuns/{guarded.run_id}/taskInstances/submit"
    plan = f"/api/v2/dags/mistyped/dagRuns/{mistyped.run_id}/taskInstances/plan"
    expected = {
        "/api/v2/connections/guarded": USER,
        "/api/v2/dagSources/guarded": "build_dags",
        "/api/v2/dags/guarded/details": "max_offsets_per_trigger",
        "/api/v2/eventLogs": "guarded",
        submit: '"application_args":["--run-id"',
        f"{submit}/logs/1": "run_pipelines.py",
        f"{plan}/logs/1": "refuses it",
        f"{plan}/xcomEntries/plan": "refuses it",
    }
    assert [path for path, text in expected.items() if text.encode() not in answers[path]] == []
    telling = [path for path in answers if any(secret in answers[path] for secret in SECRETS)]
    assert telling == []


def test_no_file_holds_a_password_when_the_runs_are_over(home, guarded, mistyped, topic):
    found = home.find_files(topic.encode(), b"guarded", b"mistyped")
    assert [place for place in PLACES if not any(file.match(place) for file in found)] == []
    assert home.find_files(*SECRETS) == set()
