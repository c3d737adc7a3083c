"""What was put aside, taken up again: written once, or put aside once more."""

import json
from datetime import UTC, datetime

import pytest

from tidegate.core.errors import ReplayError
from tidegate.core.quarantine import Choice
from tidegate.core.replay import Replays
from tidegate.spark import replay as module
from tidegate.spark.replay import replay_quarantine

FILES = {
    "type": "files",
    "path": "landing",
    "format": "json",
    "schema": "id long, amount double, at timestamp",
    "max_files_per_trigger": 1,
    "provenance": False,
    "malformed": "drop",
}
AT = "2026-01-31T12:00:00.123456"
ALL = Choice()


def rule(check, name="large", **more):
    return {"name": name, "check": check, **more}


@pytest.fixture
def land(settings):
    """Land a file of rows (id, amount)."""
    folder = settings.locate("landing")
    folder.mkdir(parents=True)

    def write(name, *rows):
        lines = (json.dumps({"id": n, "amount": amount, "at": AT}) for n, amount in rows)
        (folder / name).write_text("\n".join(lines))

    return write


@pytest.fixture
def replay(settings):
    """Begin a replay, carry it out, and tell what became of it."""

    def carry_out(pipeline, choice=ALL):
        replays = Replays(pipeline, settings)
        begun = replays.begin(choice)
        assert begun, "there is nothing to be taken up"
        replay_quarantine(pipeline, settings, begun.id)
        return replays.read(begun.id)

    return carry_out


@pytest.fixture
def strict(runs, pipeline_of, land):
    """Rows of which three were put aside by one rule and one by another."""
    land("a.json", (1, 5.0), (2, 50.0), (3, 500.0), (4, None), (5, 7.0))
    rules = [rule("amount >= 100"), {"not_null": ["amount"]}]
    runs.run(pipeline_of(FILES, expect=rules))


def test_what_the_rules_let_through_by_now_is_written_and_the_rest_put_aside_again(
    runs, pipeline_of, strict, replay, rows_of, settings
):
    lenient = pipeline_of(FILES, expect=[rule("amount >= 7"), {"not_null": ["amount"]}])
    done = replay(lenient)
    assert (done.rows, done.result.written, done.result.put_aside) == (4, {"main": 2}, 2)
    at = datetime.fromisoformat(AT)
    assert rows_of("out", "id", "at") == [(2, at), (3, at), (5, at)]
    aside = rows_of("quarantine/p", "rule", "reason", "run_id")
    assert aside == [
        ("large", "not amount >= 7", done.id),
        ("large", "not amount >= 7; amount must not be null", done.id),
    ]
    again = replay(lenient)
    assert (again.result.written, again.result.put_aside) == ({"main": 0}, 2)
    assert len(rows_of("out")) == 3


def test_some_can_be_chosen(pipeline_of, strict, replay, settings):
    lenient = pipeline_of(FILES, expect=[{"not_null": ["amount"]}, rule("true")])
    assert Replays(lenient, settings).begin(Choice(rule="not_null_amount")) is None
    done = replay(lenient, Choice(rule="large", since=datetime(2026, 1, 1, tzinfo=UTC)))
    assert (done.result.written, done.result.put_aside) == ({"main": 3}, 1)


@pytest.mark.parametrize("moment", ["before the end", "after the delete"])
def test_a_driver_that_dies_is_followed_by_one_that_goes_on(
    runs, pipeline_of, strict, land, replay, rows_of, monkeypatch, moment
):
    lenient = pipeline_of(FILES, expect=[rule("amount >= 7")])
    delete = module._Replaying._delete_old

    def die(self):
        if moment == "after the delete":
            delete(self)
        raise ReplayError("The machine went away.")

    with monkeypatch.context() as patch:
        patch.setattr(module._Replaying, "_delete_old", die)
        with pytest.raises(ReplayError, match="went away"):
            replay(lenient)
    # More is put aside meanwhile, which is none of its business.
    land("b.json", (6, 1.0))
    runs.run(lenient)
    with pytest.raises(ReplayError, match="was not finished, and it was to take everything"):
        replay(lenient, Choice(rule="other"))
    done = replay(lenient)
    assert done.result.written == {"main": 2}
    assert rows_of("out", "id") == [(2,), (3,), (5,)]
    ids = sorted(json.loads(row)["id"] for (row,) in rows_of("quarantine/p", "row"))
    assert ids == [1, 4, 6]


def test_what_a_sink_refused_goes_to_that_sink_alone(runs, pipeline_of, land, replay, rows_of):
    def build(least):
        sinks = [
            {"type": "delta", "name": "all", "table": "all"},
            {
                "type": "delta",
                "name": "some",
                "table": "some",
                "expect": [rule(f"amount > {least}")],
            },
        ]
        return pipeline_of(FILES, sinks=sinks)

    land("a.json", (1, 5.0), (2, 50.0))
    runs.run(build(10))
    assert (len(rows_of("all")), len(rows_of("some"))) == (2, 1)
    done = replay(build(1))
    assert (done.result.written, done.result.put_aside) == ({"some": 1}, 0)
    assert rows_of("all", "id") == rows_of("some", "id") == [(1,), (2,)]
    with pytest.raises(AssertionError, match="nothing to be taken up"):
        replay(build(1))


def test_rows_of_a_sink_that_is_gone_stay_where_they_are(runs, pipeline_of, land, replay, rows_of):
    land("a.json", (1, 5.0))
    sink = {"type": "delta", "name": "old", "table": "old", "expect": [rule("amount > 10")]}
    runs.run(pipeline_of(FILES, sinks=[sink]))
    with pytest.raises(ReplayError, match="rules of old, and p has no such sink any more"):
        replay(pipeline_of(FILES))
    assert len(rows_of("quarantine/p")) == 1


def test_rows_that_are_not_what_the_steps_give_by_now_are_kept(
    runs, pipeline_of, land, replay, rows_of
):
    land("a.json", (1, 5.5))
    sink = {"columns": ["id"]}
    runs.run(pipeline_of(FILES, expect=[rule("amount > 10")], sink=sink))
    step = {"sql": "SELECT id, amount > 1 AS amount, at FROM input"}
    done = replay(pipeline_of(FILES, transform=step, sink=sink))
    assert (done.result.written, done.result.put_aside) == ({"main": 0}, 1)
    [(reason, row)] = rows_of("quarantine/p", "reason", "row")
    assert reason == "not amount > 10; its columns have other types by now"
    assert json.loads(row)["amount"] == 5.5


def test_results_of_steps_that_remember_are_taken_up_as_they_are(
    runs, pipeline_of, land, replay, rows_of
):
    land("a.json", (1, 5.0), (2, 5.0), (3, 7.0))
    parts = {
        "transform": {"sql": "SELECT amount, count(*) AS n FROM input GROUP BY amount"},
        "output_mode": "update",
        "sink": {"mode": "upsert", "keys": "amount", "sequence": "_batch"},
    }
    runs.run(pipeline_of(FILES, expect=[rule("n > 1")], **parts))
    assert rows_of("out", "amount", "n") == [(5.0, 2)]
    replay(pipeline_of(FILES, expect=[rule("n > 0")], **parts))
    assert rows_of("out", "amount", "n") == [(5.0, 2), (7.0, 1)]


@pytest.mark.kafka
def test_values_are_decoded_by_what_the_spec_says_now(
    runs, pipeline_of, kafka_default, replay, rows_of
):
    topic = kafka_default.create(partitions=1)
    kafka_default.produce(topic, [b'{"id": "one"}', b'{"id": 2}', b"{"])

    def build(schema):
        source = {
            "type": "kafka",
            "topics": [topic],
            "max_offsets_per_trigger": 10,
            "value": {"format": "json", "schema": schema},
        }
        return pipeline_of(source, transform={"sql": "SELECT string(id) AS id, _offset FROM input"})

    runs.run(build("id long"))
    assert rows_of("out") == [("2", 1)]
    done = replay(build("id string"))
    assert (done.rows, done.result.written, done.result.put_aside) == (2, {"main": 1}, 1)
    assert rows_of("out") == [("2", 1), ("one", 0)]
    [(offset, value, run_id)] = rows_of("quarantine/p", "offset", "value", "run_id")
    assert (offset, bytes(value), run_id) == (2, b"{", done.id)


@pytest.mark.kafka
def test_values_cannot_be_taken_up_by_steps_that_remember(runs, pipeline_of, kafka_default, replay):
    topic = kafka_default.create(partitions=1)
    kafka_default.produce(topic, [b"{"])
    source = {
        "type": "kafka",
        "topics": [topic],
        "max_offsets_per_trigger": 10,
        "value": {"format": "json", "schema": "id long"},
    }
    pipeline = pipeline_of(
        source,
        transform={"sql": "SELECT id, count(*) AS n FROM input GROUP BY id"},
        output_mode="update",
        sink={"mode": "upsert", "keys": "id", "sequence": "_batch"},
    )
    runs.run(pipeline)
    with pytest.raises(ReplayError, match=r"cannot be taken up.*remember rows or join"):
        replay(pipeline)
