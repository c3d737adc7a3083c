"""docs/examples.md shows the examples as they are."""

import json
from collections import defaultdict
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from demo.sample import list_examples, list_files
from tests.examples_doc import (
    name_place,
    read_blocks,
    read_results,
    read_results_of,
    show_files,
)
from tidegate.core.spec.loader import load_pipeline, parse_pipeline

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = list_examples()


def test_every_spec_that_is_an_example_has_a_sample():
    specs = [parse_pipeline(file.read_text()) for file in (ROOT / "pipelines").glob("*.yaml")]
    assert sorted(spec.name for spec in specs if "example" in spec.tags) == EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_document_shows_the_spec(name):
    file = f"pipelines/{name}.yaml"
    assert read_blocks()[file] == (ROOT / file).read_text()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_document_shows_the_input(name):
    assert read_blocks()[f"demo/examples/{name}"] == show_files(name)


def test_the_document_shows_the_output_of_every_sink_and_nothing_else():
    pipelines = [load_pipeline(ROOT / "pipelines", name).require() for name in EXAMPLES]
    shown = [result.place for pipeline in pipelines for result in read_results_of(pipeline)]
    assert sorted(shown) == sorted(read_results())
    sinks = [sink for pipeline in pipelines for sink in pipeline.sinks]
    for place in map(name_place, sinks):
        assert any(f"{each}/".startswith(f"{place}/") for each in shown), place


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_reads_its_own_landing_zone_and_runs_by_hand(name):
    pipeline = load_pipeline(ROOT / "pipelines", name).require()
    assert (pipeline.schedule, pipeline.after) == (None, ())
    paths = [source.path for source in pipeline.inputs.values()]
    assert all(f"{path}/".startswith(f"landing/{name}/") for path in paths)
    assert all(source.max_files_per_trigger == 1 for source in pipeline.inputs.values())


def read_lines(name):
    for file in list_files(name):
        for line in file.read_text().splitlines():
            yield file.name, line


def test_the_document_shows_the_history_that_follows_from_the_changes():
    changes = [json.loads(line) for _, line in read_lines("customer_history")]
    known = defaultdict(dict)
    for each in changes:
        known[(each["after"] or each["before"])["id"]][each["ts_ms"]] = each["after"]
    versions = [
        (
            str(row["id"]),
            spell(since),
            row["name"],
            row["city"],
            spell(since),
            spell(until),
            str(until is None).lower(),
        )
        for of_one in known.values()
        for (since, row), (until, _) in pairwise([*sorted(of_one.items()), (None, None)])
        if row
    ]
    assert read_results()["examples/customer_history"].rows == tuple(sorted(versions))


def spell(ts_ms):
    return f"{datetime.fromtimestamp(ts_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}" if ts_ms else ""


def test_the_document_shows_each_event_where_it_belongs():
    good, aside, seen = [], [], set()
    for file, line in read_lines("event_fan_out"):
        try:
            event = json.loads(line)
        except ValueError:
            event = {}
        is_right = event.get("kind") and event.get("severity") in range(1, 6)
        if not is_right:
            aside.append(file)
        elif event["id"] not in seen:
            seen.add(event["id"])
            good.append(event)
            aside += [file] if event["severity"] >= 4 and "user" not in event else []
    shown = read_results()

    def list_ids(place):
        return [int(row[0]) for row in shown[place].rows]

    assert list_ids("examples/events/all") == [event["id"] for event in good]
    assert list_ids("examples/events/alerts") == [
        event["id"] for event in good if event["severity"] >= 4 and "user" in event
    ]
    for kind in ("login", "logout", "payment"):
        of_kind = [event["id"] for event in good if event["kind"] == kind]
        assert list_ids(f"examples/events/kinds/{kind}") == of_kind
    assert sorted(row[3] for row in shown["quarantine/event_fan_out"].rows) == sorted(aside)
