"""A run on a real cluster whose executors are lost in the middle of it."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.spark_cluster import SparkCluster
from tidegate.core.condition import RunReached, Verdict, judge
from tidegate.core.deltatable import DeltaRows
from tidegate.core.ledger import Ledger
from tidegate.core.plan import plan_run
from tidegate.core.spec.loader import load_pipeline
from tidegate.core.submission import prepare_submission

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 240
FILES, ROWS = 6, 50
SPEC = {
    "name": "p",
    "source": {
        "type": "files",
        "path": "landing",
        "format": "json",
        "schema": "id long",
        "max_files_per_trigger": 1,
        "provenance": False,
    },
    # What is remembered lives in the executors, and must be had again where one of them is lost.
    "transform": [{"python": "cluster_steps:once"}],
    "sinks": [{"type": "delta", "table": "out"}],
    "spark": {"spark.executor.cores": "1", "spark.executor.memory": "512m"},
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = SparkCluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.stop()


@pytest.fixture
def home(settings):
    settings = replace(settings, home=ROOT, jars=ROOT / "jars")
    settings.pipelines.mkdir()
    (settings.pipelines / "p.yaml").write_text(json.dumps(SPEC))
    (settings.pipelines / "cluster_steps.py").write_text(
        "def once(df, context):\n    return df.dropDuplicates(['id'])\n"
    )
    landing = settings.locate("landing")
    landing.mkdir(parents=True)
    for number in range(FILES):
        rows = ({"id": number * ROWS // 2 + n} for n in range(ROWS))  # half of them again
        (landing / f"{number}.json").write_text("\n".join(map(json.dumps, rows)))
    return settings


def test_a_run_outlives_the_loss_of_executors(home, cluster, tmp_path):
    pipeline = load_pipeline(home.pipelines, "p").require()
    plan_run(pipeline, home, "run")
    submission = prepare_submission(pipeline, home, "run")
    conf = [f"--conf={key}={value}" for key, value in submission.conf.items()]
    spark_submit = Path(sys.executable).with_name("spark-submit")
    log = tmp_path / "driver.log"
    with log.open("wb") as told:
        driver = subprocess.Popen(
            [
                *(spark_submit, f"--master={cluster.master}", *conf),
                *(submission.application, *submission.arguments),
            ],
            env=os.environ | submission.environment | {"SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=told,
            stderr=subprocess.STDOUT,
        )
    commits = home.checkpoint_of("p") / "commits"
    try:
        for batch in (0, 2):
            end = time.monotonic() + PATIENCE_SECONDS
            while not (commits / str(batch)).exists():
                assert driver.poll() is None, log.read_text()[-3000:]
                assert time.monotonic() < end, log.read_text()[-3000:]
                time.sleep(0.02)
            cluster.kill_executor()
        assert driver.wait(PATIENCE_SECONDS) == 0, log.read_text()[-3000:]
    finally:
        driver.kill()
        driver.wait()
    assert "Lost executor" in log.read_text()
    judgement = judge(home.checkpoint_of("p"), [RunReached("run")])
    assert judgement.verdict is Verdict.REACHED, judgement.reason
    rows = DeltaRows.open(home.locate("out")).select("id").column("id").to_pylist()
    assert sorted(rows) == list(range((FILES - 1) * ROWS // 2 + ROWS))
    assert len(Ledger.beside(home.state_of("p")).read_run("run").batches) == FILES
