"""What a backfill is to do, written down and found again."""

import pytest

from tests.core.backfill.test_request import FILES, spec
from tidegate.core.backfill.book import Backfills, SliceResult
from tidegate.core.backfill.range import FilesRange
from tidegate.core.backfill.request import parse_request
from tidegate.core.backfill.survey import Found
from tidegate.core.errors import BackfillError
from tidegate.core.lease import LeaseFolder, hold_lease

ONE = FilesRange(("/a", "/b"))


@pytest.fixture
def begin(settings):
    def begin(whole, mode="append", name=None):
        loaded = spec("p", FILES)
        asked = {"pipeline": loaded.name, "mode": mode, "glob": "*", "slices": 2}
        request, pipeline = parse_request(asked, [loaded])
        book = Backfills(pipeline, settings)
        begun = book.begin(request, Found(whole), name)
        return book, begun, request

    return begin


def test_a_name_finds_what_was_begun_by_it(begin):
    book, backfill, request = begin(ONE, name="manual__2026-01-01T00:00:00+00:00")
    assert backfill.id == "backfill__manual__2026-01-01T00:00:00+00:00"
    assert book.find_named("manual__2026-01-01T00:00:00+00:00", request) == backfill
    assert book.find_named("another", request) is None


@pytest.mark.parametrize("name", ["../../etc", "a b", "x" * 500, "é", ""])
def test_no_name_leads_out_of_the_folder(begin, settings, name):
    book, backfill, request = begin(ONE, name=name)
    folder = book.folder_of(backfill.id)
    assert folder.parent == settings.state_of("p") / "backfills"
    assert folder.name.isascii()
    if name:
        assert book.find_named(name, request) == backfill


def test_a_swap_is_part_of_the_whole(begin):
    book, backfill, _ = begin(ONE, "replace")
    for number in range(len(backfill.slices)):
        book.record_slice(backfill.id, SliceResult(number, 1, 0, {}, {"main": 1}, 0))
    assert not book.is_finished(backfill)
    book.record_swap(backfill.id, "main", 2)
    assert book.is_finished(backfill)


def test_what_is_not_swapped_is_finished_with_its_last_slice(begin):
    book, backfill, _ = begin(ONE)
    book.record_slice(backfill.id, SliceResult(0, 1, 0, {}, {"main": 1}, 0))
    assert not book.is_finished(backfill)
    book.record_slice(backfill.id, SliceResult(1, 1, 0, {}, {"main": 1}, 0))
    assert book.is_finished(backfill)


def test_a_name_stands_for_what_was_asked_for_first(begin):
    book, _, request = begin(ONE, name="heal")
    other = request.model_copy(update={"glob": "other*"})
    with pytest.raises(BackfillError, match="was asked for something else"):
        book.find_named("heal", other)


def test_it_does_not_go_on_by_another_spec(begin, settings):
    book, backfill, _ = begin(ONE)
    book.refuse_changed(backfill)
    settings.pipelines.mkdir(parents=True)
    (settings.pipelines / "steps.py").write_text("x = 1\n")
    with pytest.raises(BackfillError, match="Python beside it, changed since"):
        book.refuse_changed(backfill)


def test_somebody_at_work_is_found_until_it_is_finished(begin):
    book, backfill, _ = begin(ONE)
    assert book.find_running() is None
    with hold_lease(LeaseFolder(book.folder_of(backfill.id) / "lease" / "0"), "slice", seconds=30):
        assert "slice (process" in book.find_running()
    assert book.find_running() is None
