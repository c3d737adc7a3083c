"""Other pipelines that a swap would harm."""

import pytest

from tests.core.backfill.test_request import DELTA, FILES, KAFKA, spec
from tidegate.core.backfill.neighbours import find_losers, find_stopped

SHARED = {"table": "shared"}


def load(name, source, sink=SHARED):
    return spec(name, source, sink).require()


@pytest.mark.parametrize(
    ("one", "other", "is_told"),
    [
        (FILES, FILES, True),
        (FILES, FILES | {"path": "landing/sub"}, True),
        (FILES, FILES | {"path": "landing2"}, False),
        (KAFKA, KAFKA | {"topics": ["orders", "more"]}, True),
        (KAFKA, KAFKA | {"topics": ["more"]}, False),
        (DELTA, DELTA, True),
        (DELTA, DELTA | {"table": "other"}, False),
        (FILES, KAFKA, False),
    ],
)
def test_rows_of_the_same_source_in_the_same_table_are_told(settings, one, other, is_told):
    told = list(find_losers(load("a", one), [load("b", other)], settings))
    assert [line.partition(" ")[0] for line in told] == (["b"] if is_told else [])
    assert not list(find_losers(load("a", one), [load("b", other, {"table": "x"})], settings))


def test_readers_that_take_no_changes_are_told(settings):
    reader = DELTA | {"table": "shared"}
    others = [
        load("strict", reader, {"table": "x"}),
        load("lenient", reader | {"skip_change_commits": True}, {"table": "y"}),
        load("feed", reader | {"change_data_feed": True}, {"table": "z"}),
    ]
    (told,) = find_stopped(load("a", FILES), others, settings)
    assert told.startswith("strict reads shared and stops")
