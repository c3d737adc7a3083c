"""What a person may ask for, and how mistakes are told: all at once."""

from pathlib import Path

import pytest

from tidegate.core.backfill.request import Mode, parse_request
from tidegate.core.errors import BackfillError
from tidegate.core.spec.loader import LoadedSpec
from tidegate.core.spec.pipeline import Pipeline

KAFKA = {
    "type": "kafka",
    "topics": ["orders"],
    "value": {"format": "string"},
    "max_offsets_per_trigger": 10,
}
FILES = {
    "type": "files",
    "path": "landing",
    "format": "json",
    "schema": "id long",
    "max_files_per_trigger": 1,
}
DELTA = {"type": "delta", "table": "bronze", "max_files_per_trigger": 1}
UPSERT = {"mode": "upsert", "keys": ["id"], "sequence": ["at"]}


def spec(name, source, sink=None, **parts):
    sinks = [{"type": "delta", "table": f"out/{name}"} | (sink or {})]
    given = {"name": name, "sinks": sinks} | ({"source": source} if source else {}) | parts
    return LoadedSpec(Path(f"{name}.yaml"), "", Pipeline.model_validate(given))


SPECS = [
    spec("events", KAFKA),
    spec("blind", KAFKA | {"provenance": False}),
    spec("landed", FILES),
    spec("silver", DELTA, UPSERT),
    spec("ticks", {"type": "rate", "rows_per_batch": 1}),
    spec("joined", None, sources={"a": FILES, "b": FILES}, transform={"sql": "SELECT 1"}),
]


def ask(pipeline, **given):
    return parse_request({"pipeline": pipeline} | given, SPECS)


def test_a_form_is_read_with_its_blanks_left_out():
    request, pipeline = ask(
        "events",
        mode="replace",
        offsets='{"orders": {"0": [5, 90]}}',
        since="",
        until=None,
        glob="",
        slices=4,
    )
    assert pipeline.name == "events"
    assert (request.mode, request.slices, request.parallelism) == (Mode.REPLACE, 4, 1)
    assert request.offsets == {"orders": {0: (5, 90)}}
    assert request.since is None


def test_paths_may_be_lines_of_text():
    request, _ = ask("landed", mode="append", paths="a.json\nb.json")
    assert request.paths == ("a.json", "b.json")


@pytest.mark.parametrize(
    ("pipeline", "given", "told"),
    [
        ("events", {"mode": "append"}, "needs a range"),
        ("events", {"mode": "swap", "since": "2026-01-01"}, "mode: Input should be"),
        ("events", {"mode": "append", "offsets": "{"}, "offsets: must be JSON"),
        ("events", {"mode": "append", "offsets": {"orders": {"0": [5]}}}, "offsets"),
        ("events", {"mode": "append", "glob": "*"}, "glob: is for a source of type files"),
        (
            "silver",
            {"mode": "merge", "offsets": {"a": {"0": [1, 2]}}},
            "is for a source of type kafka",
        ),
        ("landed", {"mode": "append", "glob": "*", "paths": ["a"]}, "takes paths or glob"),
        ("landed", {"mode": "append", "paths": ["a"], "since": "2026-01-01"}, "not both"),
        (
            "landed",
            {"mode": "append", "since": "2026-01-02", "until": "2026-01-01"},
            "since must be before until",
        ),
        ("silver", {"mode": "merge", "first_version": 5, "last_version": 3}, "must not be after"),
        ("silver", {"mode": "append", "since": "2026-01-01"}, "it knows rows by keys; take merge"),
        ("events", {"mode": "merge", "since": "2026-01-01"}, "does not know rows by keys"),
        ("silver", {"mode": "replace", "since": "2026-01-01"}, "take merge"),
        ("blind", {"mode": "replace", "since": "2026-01-01"}, "provenance must be true"),
        ("ticks", {"mode": "append", "since": "2026-01-01"}, "cannot be read by ranges"),
        ("joined", {"mode": "append", "since": "2026-01-01"}, "reads several sources"),
        ("nope", {"mode": "append", "since": "2026-01-01"}, "there are blind, events"),
        ("events", {"mode": "append", "since": "soon"}, "since"),
        ("events", {"mode": "append", "since": "2026-01-01", "slices": 0}, "slices"),
        ("events", {"mode": "append", "since": "2026-01-01", "slices": 5000}, "slices"),
        ("events", {"mode": "append", "since": "2026-01-01", "sliced": 5}, "sliced"),
    ],
)
def test_a_mistake_is_told(pipeline, given, told):
    with pytest.raises(BackfillError) as refused:
        ask(pipeline, **given)
    assert told in str(refused.value)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(BackfillError) as refused:
        ask("silver", mode="append", glob="*", slices=0, since="soon")
    told = "\n".join(refused.value.problems)
    for part in ("glob: is for", "slices", "since", "take merge"):
        assert part in told
    assert str(refused.value).startswith(
        f"The backfill has {len(refused.value.problems)} mistakes:"
    )


@pytest.mark.parametrize(
    "sink", [{"table": "out", "route_by": "id"}, {"type": "kafka", "topic": "t"}]
)
def test_rows_are_added_only_where_it_can_be_told_what_is_there(sink):
    given = {"name": "p", "source": FILES, "sinks": [{"type": "delta"} | sink]}
    loaded = LoadedSpec(Path("p.yaml"), "", Pipeline.model_validate(given))
    with pytest.raises(BackfillError, match="can be told of a single Delta table alone"):
        parse_request({"pipeline": "p", "mode": "append", "glob": "*"}, [loaded])
