"""Replays written down before they begin, without a JVM."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tidegate.core.errors import LedgerError, ReplayError
from tidegate.core.quarantine import Choice
from tidegate.core.replay import ReplayResult, Replays
from tidegate.core.spec.pipeline import OutputMode, Pipeline

AT = datetime(2026, 1, 31, 8, tzinfo=UTC)


def build(*sinks):
    spec = {"name": "p", "source": {"type": "rate", "rows_per_batch": 1}, "sinks": list(sinks)}
    return Pipeline.model_validate(spec)


TABLE = build({"type": "delta", "table": "out"})


@pytest.fixture
def replays(settings):
    table = pa.table(
        {"rule": ["a", "b", "b"], "run_id": ["r1", "r1", "r2"], "quarantined_at": [AT] * 3}
    )
    write_deltalake(str(settings.locate("quarantine/p")), table)
    return Replays(TABLE, settings)


@pytest.mark.parametrize(
    ("choice", "rows", "told"),
    [
        (Choice(), 3, "everything"),
        (Choice(rule="b"), 2, "rule b"),
        (Choice("b", "r2", AT), 1, f"rule b and run r2 and since {AT}"),
    ],
)
def test_what_is_meant_is_counted_and_written_down(replays, choice, rows, told):
    begun = replays.begin(choice)
    assert (begun.version, begun.rows, begun.choice.describe()) == (0, rows, told)
    assert replays.read(begun.id) == begun


def test_nothing_of_the_kind_begins_nothing(replays, settings):
    assert replays.begin(Choice(rule="c")) is None
    assert (
        Replays(TABLE.model_copy(update={"quarantine": "none"}), settings).begin(Choice()) is None
    )


def test_what_was_not_finished_comes_first(replays):
    begun = replays.begin(Choice(rule="b"))
    assert replays.begin(Choice(rule="b")) == replays.begin(Choice()) == begun
    with pytest.raises(
        ReplayError, match=r"not finished, and it was to take rule b.*go on with it"
    ):
        replays.begin(Choice(rule="a"))
    replays.finish(begun, ReplayResult({"main": 2}, 0))
    assert replays.begin(Choice(rule="a")).id != begun.id


def test_a_replay_that_is_not_there_or_broken_is_told(replays, settings):
    with pytest.raises(ReplayError, match="has no replay 'nope'"):
        replays.read("nope")
    begun = replays.begin(Choice())
    (settings.state_of("p") / "replays" / f"{begun.id}.json").write_text('{"id": 1}')
    with pytest.raises(LedgerError, match="is broken"):
        replays.begin(Choice())


def test_files_take_no_replay(replays, settings):
    pipeline = build({"type": "files", "path": "f", "format": "json"})
    with pytest.raises(ReplayError, match="Spark's own sink, which takes the batches of its query"):
        Replays(pipeline, settings).begin(Choice())


def test_all_results_take_no_replay_of_some(replays, settings):
    pipeline = TABLE.model_copy(update={"output_mode": OutputMode.COMPLETE})
    with pytest.raises(ReplayError, match="some of them alone would take the place of all"):
        Replays(pipeline, settings).begin(Choice())
