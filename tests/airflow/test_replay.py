"""The DAG that takes up again what was put aside, in one process: real tasks, real spark-submit."""

import json
from pathlib import Path

import pytest

from tests.e2e.home import read_table

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


def rules(most):
    return [{"name": "small", "check": f"id < {most}", "on_fail": "quarantine"}]


@pytest.fixture
def run_replay(dag_bag):
    def run(**conf):
        result = dag_bag().dags["replay"].test(run_conf=conf)
        (task,) = result.get_task_instances()
        return str(task.state), task.xcom_pull("replay")

    return run


def test_what_a_rule_put_aside_is_written_once_the_rule_is_put_right(
    write_spec, dag_bag, run_replay, settings, capsys
):
    landing, data = Path(settings.data) / "landing", Path(settings.data)
    landing.mkdir(parents=True)
    (landing / "a.json").write_text("\n".join(json.dumps({"id": n}) for n in (1, 20, 300)))
    write_spec(expect=rules(10))
    dag_bag().dags["p"].test()
    assert [row["id"] for row in read_table(data / "out/p")] == [1]

    assert run_replay(pipeline="p", rule="another") == ("skipped", None)
    assert run_replay(pipeline="p", until="2020-01-01T00:00:00Z") == ("skipped", None)

    write_spec(expect=rules(100))
    state, told = run_replay(pipeline="p", rule="small")
    assert state == "success"
    assert (told["written"], told["put_aside"]) == ({"main": 1}, 1)
    assert sorted(row["id"] for row in read_table(data / "out/p")) == [1, 20]
    assert [json.loads(row["row"])["id"] for row in read_table(data / "quarantine/p")] == [300]
    assert "1 rows failed again" in capsys.readouterr().out
