"""Paths on any store, and files that are never seen half written."""

import errno
import os

import pytest
from upath import UPath

from tidegate.core.storage import (
    create_text,
    find_files,
    is_local,
    list_names,
    open_path,
    read_json,
    remove_tree,
    spell_for_spark,
    write_json,
    write_text,
)


@pytest.mark.parametrize(
    ("location", "path", "url"),
    [
        ("/data/a b", "/data/a b", "file:/data/a b"),
        ("file:/data/a", "/data/a", "file:/data/a"),
        ("file:///data/a", "/data/a", "file:/data/a"),
        ("/data/50%#é", "/data/50%#é", "file:/data/50%#é"),
        ("s3a://bucket/key", "s3://bucket/key", "s3a://bucket/key"),
        ("s3n://bucket/key", "s3://bucket/key", "s3a://bucket/key"),
        ("s3://bucket/key", "s3://bucket/key", "s3a://bucket/key"),
        ("memory://bucket/key", "memory://bucket/key", "memory://bucket/key"),
    ],
)
def test_a_location_is_opened_and_spelled_for_spark(location, path, url):
    opened = open_path(location)
    assert str(opened) == path
    assert spell_for_spark(location) == url
    assert is_local(opened) is url.startswith("file:")


@pytest.mark.parametrize(
    "url",
    [
        "abfss://lake@account.dfs.core.windows.net/state",
        "hdfs://namenode:8020/state",
        "gs://bucket/state",
        "nosuch://host/state",
    ],
)
def test_a_url_is_kept_for_spark_whether_or_not_python_can_open_it(url):
    assert spell_for_spark(url) == url


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("gcs://bucket/key", "gs://bucket/key"),
        (
            "abfs://lake@account.dfs.core.windows.net/x",
            "abfss://lake@account.dfs.core.windows.net/x",
        ),
    ],
)
def test_a_store_is_named_as_hadoop_names_it(location, url):
    assert spell_for_spark(location) == url


def test_a_relative_path_is_below_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(open_path("data/a")) == str(tmp_path / "data/a")
    assert spell_for_spark("data/a") == f"file:{tmp_path}/data/a"


def test_the_names_in_a_folder_are_files_and_folders(store):
    write_text(store / "folder" / "a.json", "")
    write_text(store / "folder" / "nested" / "b.json", "")
    assert sorted(list_names(store / "folder")) == ["a.json", "nested"]


def test_a_folder_that_does_not_exist_has_no_names(store):
    assert list_names(store / "nowhere") == []


def test_a_store_that_lists_a_path_as_its_own_entry_adds_no_name():
    write_text(UPath("memory:///folder/marker"), "")
    assert list_names(UPath("memory:///folder/marker")) == []


def test_json_is_read_as_it_was_written(store):
    value = {"text": "é 日本", "number": 1, "none": None, "list": [1, {}]}
    write_json(store / "new" / "folder" / "file.json", value)
    assert read_json(store / "new" / "folder" / "file.json") == value


def test_json_that_is_not_there_is_none(store):
    assert read_json(store / "nowhere.json") is None


def test_a_file_is_replaced_whole(store):
    write_json(store / "file.json", {"long": "x" * 1000})
    write_json(store / "file.json", {})
    assert read_json(store / "file.json") == {}
    assert list_names(store) == ["file.json"]


def test_a_reader_in_the_middle_of_a_file_goes_on_with_the_old_one(tmp_path):
    write_text(UPath(tmp_path / "file"), "old text")
    with (tmp_path / "file").open() as reader:
        assert reader.read(4) == "old "
        write_text(UPath(tmp_path / "file"), "new, and longer than the old")
        assert reader.read() == "text"


def test_a_write_that_fails_leaves_nothing_behind(tmp_path):
    (tmp_path / "file").mkdir()
    with pytest.raises(OSError, match="file"):
        write_text(UPath(tmp_path / "file"), "text")
    assert list_names(UPath(tmp_path)) == ["file"]


@pytest.fixture(params=["links", "no links"])
def links(request, monkeypatch):
    """A file system with hard links, and one without."""
    if request.param == "no links":

        def refuse(*_):
            raise OSError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "link", refuse)


@pytest.mark.usefixtures("links")
def test_a_file_is_created_once_and_never_overwritten(store):
    file = store / "a" / "1.json"
    assert create_text(file, "first")
    assert not create_text(file, "second")
    assert file.read_text() == "first"
    assert list_names(file.parent) == ["1.json"]


def test_all_files_below_a_folder_are_found_with_their_sizes(store):
    for name, text in {"a/b/c": "123", "a/d": "", "e": "12"}.items():
        write_text(store / "root" / name, text)
    assert find_files(store / "root") == {"a/b/c": 3, "a/d": 0, "e": 2}
    assert find_files(store / "nowhere") == {}


def test_a_folder_goes_with_all_that_is_in_it(store):
    for name in ("gone/a/b", "gone/c", "kept"):
        write_text(store / name, "text")
    remove_tree(store / "gone")
    remove_tree(store / "nowhere")
    assert find_files(store) == {"kept": 4}
