"""The landing zone as Spark's file source sees it; the expectations were observed on Spark 4.2."""

import os

import pytest
from upath import UPath

from tidegate.core.checkpoint.filelog import LoggedFile
from tidegate.core.ends.files import (
    Backlog,
    LandedFile,
    find_backlog,
    list_landing,
    refuse_patterns,
)
from tidegate.core.errors import BlockedError, SourceError
from tidegate.core.spec.files import FilesSource

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS
NOW_MS = 1_794_800_000_000


def list_names(folder, names, **options):
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")
    given = {"type": "files", "path": "x", "format": "text", "max_files_per_trigger": 1}
    source = FilesSource.model_validate(given | options)
    root = folder.path + "/"
    return {file.path.removeprefix(root) for file in list_landing(folder, source)}


@pytest.mark.parametrize(
    "name",
    ["a.json", "a b", "50%", "h#h", "é", "a=1", "_x=1.txt", "_metadata_x", "_common_metadata"],
)
def test_data_files_are_listed(tmp_path, name):
    assert list_names(UPath(tmp_path), [name]) == {name}


@pytest.mark.parametrize(
    "name", [".a", "_b", "c._COPYING_", ".e=1", "_SUCCESS", "_spark_metadata/0", ".tmp/a"]
)
@pytest.mark.parametrize("recursive", [True, False])
def test_hidden_files_are_not_listed(tmp_path, name, recursive):
    assert list_names(UPath(tmp_path), ["a", name], recursive=recursive) == {"a"}


@pytest.mark.parametrize(
    ("names", "listed"),
    [
        (["a", "plain/b"], {"a"}),
        (["a", "k=1/b"], {"a", "k=1/b"}),
        (["k=1/j=2/b", "k=1/j=3/c"], {"k=1/j=2/b", "k=1/j=3/c"}),
        (["_x=1/a"], {"_x=1/a"}),
        (["k=1/a", "k=1/_tmp/b", "k=1/.h/c"], {"k=1/a"}),
        (["k=1/plain/a"], {"k=1/plain/a"}),
        (["plain/k=1/a"], {"plain/k=1/a"}),
    ],
)
def test_without_recursion_only_partitions_are_followed(store, names, listed):
    assert list_names(store, names) == listed


def test_with_recursion_all_folders_are_followed(store):
    names = ["a", "x/y/z", "plain/k=1/b", "_h/c", ".h/d"]
    assert list_names(store, names, recursive=True) == {"a", "x/y/z", "plain/k=1/b"}


@pytest.mark.parametrize(
    ("glob", "matching", "other"),
    [
        ("*.{json,csv}", ["a.json", "b.csv"], ["c.txt", "json"]),
        ("a{,b}", ["a", "ab"], ["b"]),
        ("{a}", ["a"], ["{a}"]),
        ("a?c", ["abc"], ["ac"]),
        ("[a-c]x", ["bx"], ["dx"]),
        ("[^a]*", ["b"], ["a"]),
        ("[!a]*", ["b"], ["a"]),
        ("x.y", ["x.y"], ["xay"]),
        ("a^b", ["a^b"], ["ab"]),
        ("a|b", ["a|b"], ["a", "b"]),
        ("(a)$", ["(a)$"], ["a"]),
        ("A*", ["A2"], ["a1"]),
    ],
)
def test_names_are_matched_like_hadoop_does(tmp_path, glob, matching, other):
    assert list_names(UPath(tmp_path), [*matching, *other], glob=glob) == set(matching)


def test_a_glob_is_for_file_names_not_for_folders(store):
    assert list_names(store, ["k=1/a.json", "k=1/b.txt"], glob="*.json") == {"k=1/a.json"}


def test_a_file_has_its_path_and_time_in_milliseconds(tmp_path):
    (tmp_path / "a b").write_bytes(b"")
    os.utime(tmp_path / "a b", ns=(0, 1_794_800_606_036_999_999))
    given = {"type": "files", "path": "x", "format": "text", "max_files_per_trigger": 1}
    landed = list_landing(UPath(tmp_path), FilesSource.model_validate(given))
    assert landed == [LandedFile(str(tmp_path / "a b"), 1_794_800_606_036)]


def test_files_on_a_store_have_their_time(store):
    given = {"type": "files", "path": "x", "format": "text", "max_files_per_trigger": 1}
    (store / "folder").mkdir(parents=True)
    (store / "folder" / "a").write_bytes(b"")
    (landed,) = list_landing(store / "folder", FilesSource.model_validate(given))
    assert landed.modified_ms > 1_700_000_000_000


@pytest.mark.parametrize("name", ["nowhere", "file"])
def test_a_landing_zone_that_is_no_folder_is_refused(store, name):
    store.mkdir(parents=True, exist_ok=True)
    (store / "file").write_bytes(b"")
    with pytest.raises(SourceError, match=r"The landing zone .* Create the folder, or correct"):
        list_names(store / name, [])


def land(**files):
    return [LandedFile(f"/l/{name}", modified) for name, modified in files.items()]


def log(**files):
    return [
        LoggedFile(f"/l/{name}", modified, offset) for name, (modified, offset) in files.items()
    ]


def find(landed, logged, committed=-1):
    return find_backlog(landed, logged, committed_offset=committed, max_age_ms=WEEK_MS)


def test_at_first_every_file_is_read_however_old():
    assert find(land(b=NOW_MS, a=1), []) == Backlog(("/l/a", "/l/b"))


def test_committed_files_are_done():
    logged = log(a=(NOW_MS, 0), b=(NOW_MS, 1))
    assert find(land(a=NOW_MS, b=NOW_MS), logged, 1) == Backlog(())


def test_logged_files_that_are_not_committed_come_first():
    logged = log(z=(NOW_MS, 0), y=(NOW_MS, 1), x=(NOW_MS, 2))
    backlog = find(land(a=NOW_MS, x=NOW_MS, y=NOW_MS, z=NOW_MS), logged, 0)
    assert backlog == Backlog(("/l/y", "/l/x", "/l/a"))


def test_a_committed_file_that_is_gone_is_done():
    assert find([], log(a=(NOW_MS, 0)), 0) == Backlog(())


def test_a_late_file_is_read():
    assert find(land(late=NOW_MS - DAY_MS), log(a=(NOW_MS, 0)), 0) == Backlog(("/l/late",))


@pytest.mark.parametrize(
    ("age_ms", "backlog"),
    [
        (WEEK_MS - 1, Backlog(("/l/late",))),
        (WEEK_MS, Backlog(("/l/late",))),
        (WEEK_MS + 1, Backlog((), too_old=1)),
    ],
)
def test_a_file_too_much_older_than_the_newest_logged_one_is_never_read(age_ms, backlog):
    assert find(land(late=NOW_MS - age_ms), log(a=(NOW_MS, 0)), 0) == backlog


def test_age_is_measured_from_the_newest_logged_file_not_from_the_newest_landed_one():
    landed = land(new=NOW_MS + 30 * DAY_MS, old=NOW_MS - DAY_MS)
    assert find(landed, log(a=(NOW_MS, 0)), 0) == Backlog(("/l/new", "/l/old"))


def test_an_overwritten_file_is_counted_and_not_read_again():
    landed = land(a=NOW_MS + 5, b=NOW_MS, c=NOW_MS + 1, d=NOW_MS - 1)
    logged = log(a=(NOW_MS, 0), b=(NOW_MS, 0), c=(NOW_MS, 0), d=(NOW_MS, 0))
    assert find(landed, logged, 0) == Backlog((), overwritten=2)


def test_a_file_that_is_overwritten_before_its_batch_is_committed_is_still_read():
    logged = log(a=(NOW_MS, 0), b=(NOW_MS, 1))
    assert find(land(a=NOW_MS, b=NOW_MS + 5), logged, 0) == Backlog(("/l/b",))


def test_a_file_that_was_read_long_ago_is_not_called_too_old():
    logged = log(old=(NOW_MS - 30 * DAY_MS, 0), a=(NOW_MS, 1))
    assert find(land(old=NOW_MS - 30 * DAY_MS), logged, 1) == Backlog(())


def test_a_file_that_was_forgotten_and_then_overwritten_is_read_again():
    logged = log(old=(NOW_MS - 30 * DAY_MS, 0), a=(NOW_MS, 1))
    assert find(land(old=NOW_MS), logged, 1) == Backlog(("/l/old",))


@pytest.mark.parametrize(
    "name", ["a*", "a?b", "a[b", "a]b", "[1].txt", "{a", "a}", "a\\b", "folder*/a", "k={x}/a"]
)
def test_a_name_that_spark_takes_for_a_pattern_is_refused(name):
    with pytest.raises(BlockedError) as raised:
        refuse_patterns(["/l/a", f"/l/{name}", "/l/z*"], "/l")
    assert raised.value.fact == (
        f"2 files have one of * ? [ ] {{ }} \\ in their names, such as /l/{name}."
    )
    assert "reads other files of its batch twice. Rename them." in str(raised.value)


@pytest.mark.parametrize("root", ["/l", "/data [1]/l*"])
def test_other_names_and_the_landing_zone_itself_are_no_patterns(root):
    names = ["a", "a b", "50%", "h#h", "é", "a=1", "(a)$", "a|b", "a^b", "a,b", "k=1/a", "~'\"!"]
    refuse_patterns([f"{root}/{name}" for name in names], root)


def test_an_object_store_that_was_emptied_is_empty_and_one_never_seen_is_missing(settings):
    source = FilesSource(type="files", path="x", format="text", max_files_per_trigger=1)
    nowhere = UPath("memory:///emptied")
    assert list_landing(nowhere, source, was_read=True) == []
    with pytest.raises(SourceError, match="does not exist"):
        list_landing(nowhere, source)
    with pytest.raises(SourceError, match="does not exist"):
        list_landing(settings.locate("landing"), source, was_read=True)
