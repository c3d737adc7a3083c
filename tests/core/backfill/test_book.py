"""What a backfill is to do, written down and found again."""

import pytest

from tests.core.backfill.test_request import FILES, spec
from tidegate.core.backfill.book import Backfills, SliceResult
from tidegate.core.backfill.range import FilesRange
from tidegate.core.backfill.request import parse_request
from tidegate.core.backfill.survey import Found

ONE = FilesRange(("/a", "/b"))


@pytest.fixture
def begin(settings):
    def begin(whole, mode="append", name=None):
        loaded = spec("p", FILES)
        asked = {"pipeline": loaded.name, "mode": mode, "glob": "*", "slices": 2}
        request, pipeline = parse_request(asked, [loaded])
        book = Backfills(pipeline, settings)
        return book, book.begin(request, Found(whole), name)

    return begin


def test_a_name_finds_what_was_begun_by_it(begin):
    book, backfill = begin(ONE, name="manual__2026-01-01T00:00:00+00:00")
    assert backfill.id == "backfill__manual__2026-01-01T00:00:00+00:00"
    assert book.find_named("manual__2026-01-01T00:00:00+00:00") == backfill
    assert book.find_named("another") is None


@pytest.mark.parametrize("name", ["../../etc", "a b", "x" * 500, "é", ""])
def test_no_name_leads_out_of_the_folder(begin, settings, name):
    book, backfill = begin(ONE, name=name)
    folder = book.folder_of(backfill.id)
    assert folder.parent == settings.state_of("p") / "backfills"
    assert folder.name.isascii()
    if name:
        assert book.find_named(name) == backfill


def test_a_swap_is_part_of_the_whole(begin):
    book, backfill = begin(ONE, "replace")
    for number in range(len(backfill.slices)):
        book.record_slice(backfill.id, SliceResult(number, 1, 0, {}, {"main": 1}, 0))
    assert not book.is_finished(backfill)
    book.record_swap(backfill.id, "main", 2)
    assert book.is_finished(backfill)


def test_what_is_not_swapped_is_finished_with_its_last_slice(begin):
    book, backfill = begin(ONE)
    book.record_slice(backfill.id, SliceResult(0, 1, 0, {}, {"main": 1}, 0))
    assert not book.is_finished(backfill)
    book.record_slice(backfill.id, SliceResult(1, 1, 0, {}, {"main": 1}, 0))
    assert book.is_finished(backfill)
