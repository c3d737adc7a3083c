"""All pipelines of a deployment, looked at at once."""

import json
import time

import pytest

from tests.core.alerts.conftest import make_pipeline
from tidegate.core.alerts.watch import Watch
from tidegate.core.ledger import Decision, Ledger, Plan
from tidegate.core.spec.alerts import PythonChannel, Rule
from tidegate.core.spec.loader import load_specs

OPS = PythonChannel(type="python", notifier="m:ops")


@pytest.fixture
def write(settings):
    settings.pipelines.mkdir()

    def write_spec(name, text=None, **parts):
        spec = make_pipeline(name=name, sinks=[{"type": "delta", "table": f"out/{name}"}], **parts)
        dumped = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
        (settings.pipelines / f"{name}.yaml").write_text(text or json.dumps(dumped))

    return write_spec


@pytest.fixture
def block(settings):
    def record(name, reason="The landing zone does not exist."):
        plan = Plan("run 1", Decision.BLOCKED, reason, "2026-06-01T12:00:00+00:00")
        Ledger.beside(settings.state_of(name)).open_run(plan)

    return record


@pytest.fixture
def look(settings):
    watch = Watch(settings, (OPS,))
    return lambda: {seen.pipeline: seen for seen in watch.look(load_specs(settings.pipelines))}


def test_every_pipeline_is_looked_at_by_its_own_rules(write, block, look):
    write("well")
    write("bad")
    write("muted", alerts={"off": ["failed_run"]})
    for name in ("bad", "muted"):
        block(name)
    seen = look()
    assert {name: [alert.rule for alert in each.alerts] for name, each in seen.items()} == {
        "bad": [Rule.FAILED_RUN],
        "muted": [],
        "well": [],
    }
    assert "landing zone does not exist" in seen["bad"].alerts[0].fact


def test_a_spec_that_is_refused_is_told_by_the_default_channels(write, look):
    write("broken", text="name: broken\nsauce: {}\n")
    write("evil", text="name: ../../x\nsauce: {}\n")
    (seen,) = look().values()
    assert seen.channels == (OPS,)
    assert "its spec is refused" in seen.alerts[0].fact
    assert "sauce" in seen.alerts[0].fact


def test_a_ledger_that_cannot_be_read_hides_no_other(write, block, look, settings):
    write("bad")
    write("locked")
    block("bad")
    folder = settings.state_of("locked") / "runs"
    folder.mkdir(parents=True)
    (folder / "latest.json").mkdir()
    seen = look()
    assert seen["bad"].alerts
    assert set(seen["locked"].unknown) == set(Rule)


def test_what_is_seen_is_told_once(write, block, look, settings):
    write("bad", alerts={"notify": [{"type": "python", "notifier": "m:mine"}]})
    block("bad")
    told = []
    watch = Watch(settings, (OPS,))
    for _ in range(2):
        watch.settle(
            look()["bad"],
            lambda channel, message: told.append((channel.notifier, message.text)),
            lambda pipeline, alert: f"http://airflow/{pipeline}/{alert.run_id}",
        )
    ((channel, text),) = told
    assert channel == "m:mine"
    assert "see: http://airflow/bad/run 1" in text


def test_a_run_that_just_failed_is_looked_at_alone(write, block, settings):
    block("p")
    seen = Watch(settings, (OPS,)).look_at_run(make_pipeline())
    assert [alert.rule for alert in seen.alerts] == [Rule.FAILED_RUN]
    assert set(seen.unknown) == set(Rule) - {Rule.FAILED_RUN}


def test_five_hundred_healthy_pipelines_are_seen_in_seconds(write, look, settings):
    for number in range(500):
        write(f"p{number}")
        plan = Plan("run 1", Decision.IDLE, "no new files", "2999-01-01T00:00:00+00:00")
        Ledger.beside(settings.state_of(f"p{number}")).open_run(plan)
    specs = load_specs(settings.pipelines)
    began = time.monotonic()
    seen = Watch(settings, (OPS,)).look(specs)
    assert len(seen) == 500
    assert not any(each.alerts or each.unknown for each in seen)
    assert time.monotonic() - began < 10


def test_what_is_wrong_with_one_hides_no_other(settings, monkeypatch):
    from tidegate.core.alerts.measures import Measurement

    measure = Measurement.measure

    def measure_or_break(self):
        if self.pipeline.name == "broken":
            raise KeyError("reservoirId")
        return measure(self)

    monkeypatch.setattr(Measurement, "measure", measure_or_break)
    settings.pipelines.mkdir(parents=True, exist_ok=True)
    for name in ("broken", "sound"):
        spec = f"name: {name}\nsource: {{type: rate, rows_per_batch: 1}}\nsinks: [{{type: delta, table: {name}}}]\n"
        (settings.pipelines / f"{name}.yaml").write_text(spec)
    seen = {one.pipeline: one for one in Watch(settings).look(load_specs(settings.pipelines))}
    assert seen["broken"].unknown[Rule.FAILED_RUN] == "KeyError: 'reservoirId'"
    assert Rule.FAILED_RUN not in seen["sound"].unknown
