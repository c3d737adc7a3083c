"""`tidegate run`: plan, submit and confirm a pipeline without Airflow."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TextIO

import typer

from tidegate.core.condition import RunReached, Verdict, judge
from tidegate.core.errors import BlockedError, SettingsError, SubmitError, TargetMissedError
from tidegate.core.ledger import Decision, Ledger
from tidegate.core.plan import plan_run
from tidegate.core.recovery import recover_batches
from tidegate.core.settings import Settings
from tidegate.core.spec.loader import find_spec, load_specs
from tidegate.core.spec.pipeline import Pipeline
from tidegate.core.submission import (
    Submission,
    prepare_submission,
    record_silent_end,
    require_jars,
)

_SHELL_SIGNALS = 128  # a shell ends with this and the signal's number


def run(
    name: Annotated[str, typer.Argument(help="The pipeline.")],
    master: Annotated[
        str, typer.Option(envvar="TIDEGATE_MASTER", help="Spark's master.")
    ] = "local[*]",
    *,
    accept_data_loss: Annotated[
        bool, typer.Option("--accept-data-loss", help="Give up Kafka records that expired unread.")
    ] = False,
) -> None:
    """Run a pipeline once by spark-submit, through the same code as its DAG."""
    settings = Settings.from_environment()
    pipeline = find_spec(load_specs(settings.pipelines), settings.pipelines, name).require()
    run_id = f"cli__{datetime.now(UTC).isoformat(timespec='milliseconds')}"
    plan = plan_run(pipeline, settings, run_id, accepts_loss=accept_data_loss)
    if plan.decision is Decision.BLOCKED:
        raise BlockedError(f"{name} is blocked: {plan.reason}")
    print(f"{name}: {plan.decision}, {plan.reason}", flush=True)
    if plan.warning:
        print(f"{name}: {plan.warning}", flush=True)
    if plan.decision is Decision.IDLE:
        return
    require_jars(settings)
    try:
        submit(prepare_submission(pipeline, settings, run_id), master)
    except SubmitError:
        record_silent_end(settings, name, run_id)
        raise
    _confirm(pipeline, settings, run_id)


def submit(submission: Submission, master: str, output: TextIO | None = None) -> None:
    """Call spark-submit and wait for it; what it prints goes to the output, or to our own."""
    command = [_find_spark_submit(), "--master", master]
    for key, value in submission.conf.items():
        command += ["--conf", f"{key}={value}"]
    command += [submission.application, *submission.arguments]
    environment = os.environ | submission.environment
    if master.startswith("local"):
        environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    finished = subprocess.run(command, env=environment, stdout=output, check=False)
    code = finished.returncode
    if code < 0 or code > _SHELL_SIGNALS:
        raise SubmitError(
            f"spark-submit was killed by signal {-code if code < 0 else code - _SHELL_SIGNALS}.",
            cause="What it had committed is kept.",
            remedy="Run the pipeline again: it goes on from the last commit.",
        )
    if code:
        raise SubmitError(
            f"spark-submit ended with exit code {code}.",
            remedy="The reason is in the last line above that begins with 'tidegate:'.",
        )


def _find_spark_submit() -> str:
    beside = Path(sys.executable).with_name("spark-submit")
    found = str(beside) if beside.exists() else shutil.which("spark-submit")
    if not found:
        raise SettingsError(
            "spark-submit is neither beside Python nor on the PATH.",
            remedy="Install pyspark into this environment, or put Spark's bin folder on the PATH.",
        )
    return found


def _confirm(pipeline: Pipeline, settings: Settings, run_id: str) -> None:
    judgement = judge(settings.checkpoint_of(pipeline.name), [RunReached(run_id)])
    if judgement.verdict is not Verdict.REACHED:
        raise TargetMissedError(judgement.reason)
    ledger = Ledger.beside(settings.state_of(pipeline.name))
    recover_batches(pipeline, settings, ledger.read_plan(run_id), judgement.progress)
    run = ledger.read_run(run_id)
    did = run.summary
    if not did.batches:
        print(f"{pipeline.name}: the job found nothing new")
        return
    counts = {"rows read": did.input_rows, "written": did.output_rows}
    told = "".join(f", {count:,} {what}" for what, count in counts.items() if count is not None)
    print(
        f"{pipeline.name}: committed batch {judgement.progress.committed_batch}, "
        f"{len(did.batches)} batches{told}"
    )
    if run.attempt and run.attempt.stop:
        print(f"{pipeline.name}: {run.attempt.stop.reason}; the next run goes on")
