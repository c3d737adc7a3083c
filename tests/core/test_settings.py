from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from tidegate.core.settings import Settings

HOME = Path("/srv/tidegate")


def load(home=HOME, **variables):
    return Settings.from_environment(home, variables)


def test_everything_is_below_the_home_folder_by_default():
    assert load() == Settings(
        home=HOME,
        pipelines=HOME / "pipelines",
        data="/srv/tidegate/var/data",
        state="/srv/tidegate/var/state",
        jars=HOME / "jars",
    )


def test_the_home_folder_is_the_current_one_unless_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Settings.from_environment(environment={}).home == tmp_path


def test_the_process_environment_is_the_default(monkeypatch):
    monkeypatch.setenv("TIDEGATE_HOME", "/elsewhere")
    assert Settings.from_environment(HOME).home == Path("/elsewhere")


def test_a_relative_home_folder_becomes_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load(TIDEGATE_HOME="deploy").pipelines == tmp_path / "deploy" / "pipelines"


@pytest.mark.parametrize(
    ("variable", "field"),
    [
        ("TIDEGATE_PIPELINES", "pipelines"),
        ("TIDEGATE_DATA", "data"),
        ("TIDEGATE_STATE", "state"),
        ("TIDEGATE_JARS", "jars"),
    ],
)
@pytest.mark.parametrize(
    ("value", "found"), [("other", "/srv/tidegate/other"), ("/mnt/other", "/mnt/other")]
)
def test_a_variable_is_relative_to_home_or_absolute(variable, field, value, found):
    assert str(getattr(load(**{variable: value}), field)) == found


@pytest.mark.parametrize(
    ("variable", "field"), [("TIDEGATE_DATA", "data"), ("TIDEGATE_STATE", "state")]
)
@pytest.mark.parametrize("url", ["s3a://bucket/x", "memory://x", "file:/mnt/x", "abfss://c@a/x"])
def test_data_and_state_may_be_on_any_store(variable, field, url):
    assert getattr(load(**{variable: url}), field) == url


@pytest.mark.parametrize(
    "variable",
    ["TIDEGATE_HOME", "TIDEGATE_PIPELINES", "TIDEGATE_DATA", "TIDEGATE_STATE", "TIDEGATE_JARS"],
)
def test_a_variable_that_is_empty_is_not_set(variable):
    assert load(**{variable: ""}) == load()


def test_other_variables_change_nothing():
    assert load(TIDEGATE_OTHER="x", HOME="/root", PATH="/bin") == load()


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"TIDEGATE_HOME": "/a", "TIDEGATE_PIPELINES": "/p", "TIDEGATE_DATA": "s3a://b/d"},
        {"TIDEGATE_STATE": "memory://s", "TIDEGATE_JARS": "lib"},
    ],
)
def test_settings_spelled_as_variables_are_read_back_alike(variables):
    settings = load(**variables)
    assert load(Path("/another/home"), **settings.to_environment()) == settings


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("landing/orders", "file:/srv/tidegate/var/data/landing/orders"),
        ("/mnt/orders", "file:/mnt/orders"),
        ("file:/mnt/orders", "file:/mnt/orders"),
        ("file:///mnt/orders", "file:/mnt/orders"),
        ("memory://bucket/orders", "memory://bucket/orders"),
        (".", "file:/srv/tidegate/var/data"),
        ("with space/x", "file:/srv/tidegate/var/data/with space/x"),
    ],
)
def test_a_location_is_below_the_data_root_unless_it_is_absolute(path, url):
    assert load().locate_url(path) == url


@pytest.mark.parametrize(
    ("data", "url"),
    [
        ("memory://bucket/data", "memory://bucket/data/landing"),
        ("s3://bucket/data/", "s3a://bucket/data/landing"),
        ("s3a://bucket", "s3a://bucket/landing"),
        ("abfss://lake@account.dfs.core.windows.net/data", None),
        ("hdfs://namenode:8020/data", None),
        ("file:/mnt/data", "file:/mnt/data/landing"),
        ("file:///mnt/data/", "file:/mnt/data/landing"),
    ],
)
def test_a_relative_location_is_below_a_data_root_on_another_store(data, url):
    settings = load(TIDEGATE_DATA=data)
    assert settings.locate_url("landing") == (url or f"{data}/landing")


def test_a_location_is_the_same_folder_for_python_and_for_spark():
    settings = load(TIDEGATE_DATA="memory://bucket/data/")
    assert str(settings.locate("landing/orders")) == "memory://bucket/data/landing/orders"
    assert settings.locate_url("landing/orders") == "memory://bucket/data/landing/orders"


@pytest.mark.parametrize(
    ("state", "folder"),
    [("var/state", "/srv/tidegate/var/state/orders"), ("memory://b/s", "memory://b/s/orders")],
)
def test_a_pipeline_keeps_its_state_and_checkpoint_in_a_folder_of_its_name(state, folder):
    settings = load(TIDEGATE_STATE=state)
    assert str(settings.state_of("orders")) == folder
    assert str(settings.checkpoint_of("orders")) == f"{folder}/checkpoint"


@pytest.mark.parametrize(
    ("state", "url"),
    [
        ("var/state", "file:/srv/tidegate/var/state/orders/checkpoint"),
        ("/mnt/a b/", "file:/mnt/a b/orders/checkpoint"),
        ("file:///mnt/s", "file:/mnt/s/orders/checkpoint"),
        ("memory://b/s/", "memory://b/s/orders/checkpoint"),
        ("s3://b/s", "s3a://b/s/orders/checkpoint"),
        ("abfss://c@a.dfs.core.windows.net", "abfss://c@a.dfs.core.windows.net/orders/checkpoint"),
        ("hdfs://namenode:8020/s", "hdfs://namenode:8020/s/orders/checkpoint"),
    ],
)
def test_a_checkpoint_is_spelled_for_spark(state, url):
    assert load(TIDEGATE_STATE=state).checkpoint_url_of("orders") == url


def test_settings_are_frozen_and_hashable():
    assert hash(load()) == hash(load())
    with pytest.raises(FrozenInstanceError):
        load().data = "elsewhere"
