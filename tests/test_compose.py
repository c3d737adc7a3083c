"""docker-compose.yaml, .env.example and the Dockerfile, checked without a Docker engine."""

from __future__ import annotations

import importlib.resources
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[1]
COMPOSE: dict[str, Any] = YAML(typ="safe").load((ROOT / "docker-compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = sorted(name for name, service in SERVICES.items() if "build" in service)
AIRFLOW = sorted(name for name in OURS if name.startswith("airflow-"))
ONE_SHOT = {
    target
    for service in SERVICES.values()
    for target, wait in service.get("depends_on", {}).items()
    if wait["condition"] == "service_completed_successfully"
}
LONG_RUNNING = sorted(SERVICES.keys() - ONE_SHOT)
SECRET = re.compile(r"PASSWORD|SECRET|KEY|TOKEN")
REFERENCE = re.compile(
    r"\$(?:(?P<dollar>\$)"
    r"|\{(?P<name>\w+)(?:(?P<operator>:?[-?+])(?P<argument>[^}]*))?\}"
    r"|(?P<bare>[A-Za-z_]\w*))"
)
# As made by the commands in .env.example.
ENVIRONMENT = {
    "POSTGRES_PASSWORD": "1f" * 32,
    "AIRFLOW_FERNET_KEY": "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=",
    "AIRFLOW_JWT_SECRET": "2e" * 64,
    "AIRFLOW_API_SECRET_KEY": "3d" * 32,
}


def substitute(text: str, environment: Mapping[str, str]) -> str:
    """Fill in variables as Compose does."""

    def replace(match: re.Match[str]) -> str:
        if match["dollar"]:
            return "$"
        name, operator = match["name"] or match["bare"], match["operator"]
        if environment.get(name):
            return environment[name]
        assert operator in {":-", "-"}, f"{match[0]} has no value"
        return match["argument"]

    return REFERENCE.sub(replace, text)


def list_strings(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from list_strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from list_strings(item)
    elif isinstance(value, str):
        yield value


def list_references() -> list[re.Match[str]]:
    texts = list_strings(COMPOSE)
    return [match for text in texts for match in REFERENCE.finditer(text) if not match["dollar"]]


def list_variables(*, with_default: bool) -> set[str]:
    return {
        match["name"] or match["bare"]
        for match in list_references()
        if (match["operator"] in {":-", "-"}) is with_default
    }


def list_volumes(service: str) -> dict[str, tuple[str, str]]:
    """List what is mounted where: by target, the source and the mode."""
    parts = [volume.split(":") for volume in SERVICES[service].get("volumes", [])]
    return {target: (source, mode[0] if mode else "rw") for source, target, *mode in parts}


def is_bind(source: str) -> bool:
    return source.startswith((".", "/", "~"))


def read_environment(service: str) -> dict[str, str]:
    given = SERVICES[service].get("environment", {})
    return {key: substitute(str(value), ENVIRONMENT) for key, value in given.items()}


class TestCompose:
    def test_is_valid_by_the_official_schema(self):
        package = importlib.resources.files("check_jsonschema")
        schema = package.joinpath("builtin_schemas", "vendor", "compose-spec.json").read_text()
        jsonschema.Draft202012Validator(json.loads(schema)).validate(COMPOSE)

    def test_has_every_service(self):
        assert SERVICES.keys() == {
            "postgres",
            "airflow-init",
            "airflow-api-server",
            "airflow-scheduler",
            "airflow-dag-processor",
            "airflow-triggerer",
            "spark-master",
            "spark-worker",
            "kafka",
        }

    @pytest.mark.parametrize("service", LONG_RUNNING)
    def test_long_running_service_is_watched_and_restarted(self, service):
        check = SERVICES[service]["healthcheck"]
        assert check["test"][0] == "CMD"
        assert {"interval", "timeout", "retries", "start_period"} <= check.keys()
        assert SERVICES[service]["restart"] == "unless-stopped"

    @pytest.mark.parametrize("service", sorted(ONE_SHOT))
    def test_one_shot_service_ends(self, service):
        assert "healthcheck" not in SERVICES[service]
        assert SERVICES[service]["restart"] == "no"

    @pytest.mark.parametrize("service", sorted(SERVICES))
    def test_waits_only_for_what_can_come(self, service):
        for target, wait in SERVICES[service].get("depends_on", {}).items():
            assert target in SERVICES
            expected = "service_completed_successfully" if target in ONE_SHOT else "service_healthy"
            assert wait["condition"] == expected

    @pytest.mark.parametrize("service", sorted(SERVICES))
    def test_image_is_pinned(self, service):
        _, separator, tag = SERVICES[service]["image"].rpartition(":")
        assert separator
        assert tag != "latest"
        if service in OURS:
            assert SERVICES[service]["pull_policy"] == "build"
        else:
            assert re.match(r"\d+\.\d+", tag)

    @pytest.mark.parametrize("service", sorted(SERVICES))
    def test_is_published_to_this_machine_only(self, service):
        for port in SERVICES[service].get("ports", []):
            assert substitute(port, {}).startswith("127.0.0.1:")

    @pytest.mark.parametrize("service", sorted(SERVICES))
    def test_has_no_privileges(self, service):
        given = SERVICES[service]
        assert given["user"].split(":")[0] not in {"root", "0"}
        assert given["security_opt"] == ["no-new-privileges:true"]
        assert given["cap_drop"] == ["ALL"]
        assert not given.keys() & {"privileged", "cap_add", "pid", "ipc", "network_mode", "devices"}
        assert not any("docker.sock" in text for text in list_strings(given))


class TestSecrets:
    @pytest.mark.parametrize("service", sorted(SERVICES))
    def test_secret_comes_from_outside(self, service):
        for key, value in SERVICES[service].get("environment", {}).items():
            if not SECRET.search(key):
                continue
            if key.endswith("_FILE"):
                source, _ = list_volumes(service)[str(Path(value).parent)]
                assert source in COMPOSE["volumes"], f"{key} is not on a volume"
            else:
                match = REFERENCE.fullmatch(value)
                assert match, f"{key} is written down"
                assert match["operator"] == ":?"

    def test_secret_has_no_default(self):
        for match in list_references():
            name = match["name"] or match["bare"]
            if SECRET.search(name):
                assert match["operator"] == ":?", f"{name} has a default, or may be empty"
                assert ".env.example" in match["argument"], f"{name} does not say how to set it"

    def test_no_url_holds_a_password(self):
        for text in list_strings(COMPOSE):
            for password in re.findall(r"://[^/:@\s]+:(.+?)@", text):
                assert REFERENCE.fullmatch(password)

    def test_spark_gets_no_secret_of_airflow(self):
        for service in set(OURS) - set(AIRFLOW):
            assert not any(map(SECRET.search, SERVICES[service].get("environment", {})))


class TestEnvExample:
    TEXT = (ROOT / ".env.example").read_text()

    def test_lists_what_must_be_set(self):
        assert set(re.findall(r"^(\w+)=", self.TEXT, re.MULTILINE)) == list_variables(
            with_default=False
        )

    def test_mentions_what_may_be_set(self):
        commented = dict(re.findall(r"^#(\w+)=(.*)$", self.TEXT, re.MULTILINE))
        assert commented.keys() == list_variables(with_default=True)
        for match in list_references():
            if match["operator"] == ":-":
                assert commented[match["name"]] == match["argument"]

    def test_has_no_value_and_says_how_to_make_one(self):
        for paragraph in self.TEXT.split("\n\n"):
            for value in re.findall(r"^\w+=(.*)$", paragraph, re.MULTILINE):
                assert value == ""
                assert "openssl rand" in paragraph


class TestVolumes:
    @pytest.mark.parametrize("service", sorted(SERVICES))
    def test_is_declared_or_in_the_repository(self, service):
        for source, mode in list_volumes(service).values():
            if is_bind(source):
                assert (ROOT / source).exists()
                assert mode == "ro"
            else:
                assert source in COMPOSE["volumes"]

    def test_declares_none_in_vain(self):
        used = {source for name in SERVICES for source, _ in list_volumes(name).values()}
        assert used >= COMPOSE["volumes"].keys()

    @pytest.mark.parametrize("service", [*AIRFLOW, "spark-worker"])
    def test_driver_and_executors_share_paths(self, service):
        environment, volumes = read_environment(service), list_volumes(service)
        assert environment["TIDEGATE_HOME"] == "/opt/tidegate"
        assert volumes[environment["TIDEGATE_DATA"]] == ("tidegate-data", "rw")
        assert volumes[environment["TIDEGATE_STATE"]] == ("tidegate-state", "rw")
        assert volumes["/opt/tidegate/pipelines"] == ("./pipelines", "ro")


_PROBE = """
import json, os, sys

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.cli.cli_parser import get_parser
from airflow.configuration import conf
from airflow.jobs.dag_processor_job_runner import DagProcessorJobRunner
from airflow.jobs.scheduler_job_runner import SchedulerJobRunner
from airflow.jobs.triggerer_job_runner import TriggererJobRunner
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

parser = get_parser()
for command in json.loads(sys.argv[1]):
    parser.parse_args(command)
known = conf.configuration_description
options = [key.lower().split("__")[1:] for key in os.environ if key.startswith("AIRFLOW__")]
runners = {
    "airflow-dag-processor": DagProcessorJobRunner,
    "airflow-scheduler": SchedulerJobRunner,
    "airflow-triggerer": TriggererJobRunner,
}
users = SimpleAuthManager.get_users()
found = {
    "job_types": {name: runner.job_type for name, runner in runners.items()},
    "master": SparkSubmitHook(conn_id="spark_default")._resolve_connection()["master"],
    "passwords_file": SimpleAuthManager.get_generated_password_file(),
    "unknown": [[s, o] for s, o in options if o not in known.get(s, {}).get("options", {})],
    "users": [[user.username, user.role] for user in users],
}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def airflow(tmp_path_factory):
    """What the real Airflow makes of the API server's environment and of all its commands."""
    home = tmp_path_factory.mktemp("airflow")
    commands = [SERVICES[name]["command"] for name in AIRFLOW]
    checks = [SERVICES[name].get("healthcheck", {}).get("test", [])[1:] for name in AIRFLOW]
    arguments = [words[1:] for words in commands + checks if words[:1] == ["airflow"]]
    answer = subprocess.run(
        [sys.executable, "-c", _PROBE, json.dumps(arguments)],
        env={
            "PATH": os.environ["PATH"],
            **read_environment("airflow-api-server"),
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        },
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout.splitlines()[-1])


@pytest.mark.airflow
class TestAirflow:
    def test_connection_is_the_cluster(self, airflow):
        command = SERVICES["spark-master"]["command"]
        host, port = (command[command.index(option) + 1] for option in ("--host", "--port"))
        assert airflow["master"] == "spark://spark-master:7077" == f"spark://{host}:{port}"

    def test_every_option_exists(self, airflow):
        assert airflow["unknown"] == []

    def test_admin_names_a_role(self, airflow):
        assert airflow["users"] == [["admin", "admin"]]
        assert airflow["passwords_file"] == "/opt/airflow/auth/passwords.json"

    def test_health_checks_ask_for_the_right_job(self, airflow):
        for service, job_type in airflow["job_types"].items():
            test = SERVICES[service]["healthcheck"]["test"]
            assert test[test.index("--job-type") + 1] == job_type


class TestSpark:
    def test_connection_is_json(self):
        for service in AIRFLOW:
            connection = json.loads(read_environment(service)["AIRFLOW_CONN_SPARK_DEFAULT"])
            assert connection["conn_type"] == "spark"

    def test_worker_finds_the_master(self):
        assert SERVICES["spark-worker"]["command"][-1] == "spark://spark-master:7077"

    def test_driver_has_a_name_that_executors_resolve(self):
        scheduler = "airflow-scheduler"
        assert SERVICES[scheduler]["hostname"] == scheduler
        assert read_environment(scheduler)["SPARK_LOCAL_HOSTNAME"] == scheduler


@dataclass(frozen=True)
class Instruction:
    """One instruction of the Dockerfile, its continued lines joined."""

    name: str
    arguments: str

    @property
    def sources(self) -> list[str]:
        words = [word for word in shlex.split(self.arguments) if not word.startswith("--")]
        return words[:-1]


def read_dockerfile() -> list[Instruction]:
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [Instruction(*line.split(maxsplit=1)) for line in lines if line.strip()]


DOCKERFILE = read_dockerfile()
COPIED = sorted(
    {
        source
        for instruction in DOCKERFILE
        if instruction.name == "COPY" and "--from=" not in instruction.arguments
        for source in instruction.sources
    }
)


def list_final_stage() -> list[Instruction]:
    start = max(i for i, instruction in enumerate(DOCKERFILE) if instruction.name == "FROM")
    return DOCKERFILE[start:]


class TestDockerfile:
    @pytest.mark.parametrize("source", COPIED)
    def test_copies_what_exists(self, source):
        assert (ROOT / source).exists()

    @pytest.mark.parametrize("source", COPIED)
    def test_is_let_through_by_dockerignore(self, source):
        lines = (ROOT / ".dockerignore").read_text().splitlines()
        patterns = [line for line in lines if line and not line.startswith("#")]
        assert patterns[0] == "*"
        assert f"!{source.split('/')[0]}" in patterns

    @pytest.mark.parametrize("folder", ["dags", "jobs", "pipelines", "plugins"])
    def test_holds_all_that_a_deployment_needs(self, folder):
        if any((ROOT / folder).glob("*.*")):
            assert folder in COPIED

    def test_bases_are_pinned(self):
        stages = [shlex.split(i.arguments) for i in DOCKERFILE if i.name == "FROM"]
        own = {words[-1] for words in stages if len(words) == 3}
        bases = {words[0] for words in stages} - own
        assert bases
        assert all(re.search(r":\d+\.\d+\.\d+-", base) for base in bases)

    def test_ends_as_an_ordinary_user(self):
        final = list_final_stage()
        users = [instruction.arguments for instruction in final if instruction.name == "USER"]
        assert users[-1] == "tidegate"
        assert any("useradd --uid 50000 --gid 50000" in i.arguments for i in final)
        assert {SERVICES[name]["user"] for name in OURS} == {"50000:50000"}

    def test_volumes_will_belong_to_the_user(self):
        setup = next(i for i in list_final_stage() if "install --directory" in i.arguments)
        assert "--owner=tidegate" in setup.arguments
        for service in OURS:
            for target, (source, _) in list_volumes(service).items():
                assert is_bind(source) or target in setup.arguments.split()

    def test_installs_only_what_is_locked(self):
        run = " ".join(i.arguments for i in DOCKERFILE if i.name == "RUN")
        assert "--require-hashes requirements.txt" in run
        assert "sha256sum --strict --check" in run
        assert "--no-deps" in run

    @pytest.mark.parametrize("driver", ["psycopg2-binary", "asyncpg"])
    def test_has_the_drivers_of_the_database(self, driver):
        # Airflow uses the one that the URL names, and asyncpg beside it.
        url = read_environment("airflow-scheduler")["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]
        assert url.startswith("postgresql+psycopg2://")
        locked = (ROOT / "requirements.txt").read_text()
        assert re.search(rf"^{driver}==", locked, re.MULTILINE)
