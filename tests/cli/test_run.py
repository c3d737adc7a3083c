import sys

import pytest

from tidegate.core.errors import (
    BlockedError,
    SettingsError,
    SpecError,
    SubmitError,
    TargetMissedError,
)
from tidegate.core.ledger import Decision, Ledger


@pytest.fixture
def land(deployment, tmp_path):
    """Create the landing zone, with files of these names."""

    def create(*names):
        landing = tmp_path / "data" / "landing"
        landing.mkdir(parents=True)
        for name in names:
            (landing / name).write_text("x\n")

    return create


@pytest.fixture
def without_spark(monkeypatch, tmp_path):
    """Make neither Python's folder nor the PATH hold a spark-submit; return Python's folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return folder


@pytest.fixture
def add_pipeline(add_spec, deployment):
    """Make `orders` ready to be submitted: a spec and an empty Delta JAR."""

    def add(*lines):
        add_spec("orders", *lines)
        deployment.jars.mkdir()
        (deployment.jars / "delta-spark_4.2_2.13-4.4.0.jar").touch()

    return add


@pytest.fixture
def run_with(add_pipeline, without_spark, invoke):
    """Run `orders` by a spark-submit beside Python that runs a line of shell and no JVM."""

    def run(shell, *arguments):
        add_pipeline()
        write_spark_submit(without_spark, shell)
        return invoke("run", "orders", *arguments)

    return run


def write_spark_submit(folder, shell):
    folder.mkdir(exist_ok=True)
    script = folder / "spark-submit"
    script.write_text(f"#!/bin/sh\n{shell}\n")
    script.chmod(0o755)


def read_plan(deployment, name):
    return Ledger.beside(deployment.state_of(name)).find_latest().plan


@pytest.mark.parametrize("name", ["nope", "../orders", "/etc/passwd", "a;b"])
def test_a_pipeline_that_is_not_there_is_told_with_those_that_are(invoke, add_spec, name):
    add_spec("orders")
    error = invoke("run", name).exception
    assert isinstance(error, SpecError)
    assert f"there is no pipeline {name!r} in it; there are orders" in str(error)


def test_a_broken_spec_is_told_with_all_its_mistakes_and_nothing_is_planned(
    invoke, add_spec, deployment
):
    add_spec("orders", text="name: orders\nnope: 1\n")
    error = invoke("run", "orders").exception
    assert isinstance(error, SpecError)
    assert len(error.problems) == 3
    assert not deployment.state_of("orders").exists()


def test_a_run_that_no_retry_can_mend_is_blocked(invoke, add_files_spec, deployment):
    add_files_spec("orders")
    error = invoke("run", "orders").exception
    assert isinstance(error, BlockedError)
    assert str(error).startswith("orders is blocked: The landing zone ")
    assert read_plan(deployment, "orders").decision is Decision.BLOCKED


def test_a_broken_checkpoint_blocks_the_run(invoke, add_spec, checkpoint_of):
    add_spec("orders")
    checkpoint_of("orders").metadata().write("offsets/0", "")
    error = invoke("run", "orders").exception
    assert isinstance(error, BlockedError)
    assert "offsets/0 is corrupt" in str(error)


def test_a_run_with_nothing_to_do_ends_well(invoke, add_files_spec, land, deployment):
    add_files_spec("orders")
    land()
    result = invoke("run", "orders")
    assert (result.exit_code, result.stdout) == (0, "orders: idle, no new files among 0\n")
    assert read_plan(deployment, "orders").decision is Decision.IDLE


def test_a_run_without_jars_is_told_how_to_get_them(invoke, add_files_spec, land):
    add_files_spec("orders")
    land("a", "b")
    result = invoke("run", "orders")
    assert result.stdout == "orders: run, 2 files to read\n"
    assert isinstance(result.exception, SettingsError)
    assert "Run 'make jars'" in str(result.exception)


def test_a_run_without_spark_submit_is_told_how_to_get_it(invoke, add_pipeline, without_spark):
    add_pipeline()
    error = invoke("run", "orders").exception
    assert isinstance(error, SettingsError)
    assert str(error) == (
        "spark-submit is neither beside Python nor on the PATH. "
        "Install pyspark into this environment, or put Spark's bin folder on the PATH."
    )


def test_a_job_that_fails_is_told_with_its_exit_code(run_with):
    error = run_with("exit 3").exception
    assert isinstance(error, SubmitError)
    assert "spark-submit ended with exit code 3." in str(error)


def test_a_job_that_ends_well_but_commits_nothing_is_not_believed(run_with):
    error = run_with("exit 0").exception
    assert isinstance(error, TargetMissedError)
    assert "nothing is committed yet" in str(error)


@pytest.mark.parametrize(
    ("arguments", "variable", "master"),
    [
        ((), "", "local[*]"),
        (("--master", "local[2]"), "", "local[2]"),
        ((), "spark://host:7077", "spark://host:7077"),
        (("--master", "yarn"), "spark://host:7077", "yarn"),
    ],
)
def test_spark_submit_is_given_the_master(run_with, monkeypatch, arguments, variable, master):
    if variable:
        monkeypatch.setenv("TIDEGATE_MASTER", variable)
    monkeypatch.setenv("GIVEN", f"--master {master} --conf")
    result = run_with('case "$*" in "$GIVEN"*) exit 42;; *) exit 1;; esac', *arguments)
    assert "exit code 42" in str(result.exception)


def test_spark_submit_is_given_the_driver_its_run_and_its_settings(
    invoke, add_pipeline, without_spark, deployment
):
    add_pipeline("spark: {spark.x: 'a b; $(c)'}")
    out = deployment.home
    shell = f'printf "%s\\n" "$@" > {out}/arguments; env > {out}/variables; exit 1'
    write_spark_submit(without_spark, shell)
    invoke("run", "orders")
    arguments = (out / "arguments").read_text().splitlines()
    run_id = read_plan(deployment, "orders").run_id
    driver = f"{deployment.home}/jobs/run_pipelines.py"
    assert arguments[-4:] == [driver, "--run-id", run_id, "orders"]
    assert arguments[arguments.index("spark.x=a b; $(c)") - 1] == "--conf"
    variables = (out / "variables").read_text().splitlines()
    for name, value in deployment.to_environment().items():
        assert f"{name}={value}" in variables


def test_spark_submit_on_the_path_will_do(invoke, add_pipeline, without_spark, monkeypatch):
    add_pipeline()
    elsewhere = without_spark.with_name("spark")
    write_spark_submit(elsewhere, "exit 7")
    monkeypatch.setenv("PATH", f"{elsewhere}:/usr/bin:/bin")
    assert "exit code 7" in str(invoke("run", "orders").exception)


def test_an_error_is_one_message_and_exit_code_1(call, add_files_spec):
    add_files_spec("orders")
    result = call("run", "orders")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("tidegate: orders is blocked: The landing zone ")
    assert result.stderr.count("\n") == 1
