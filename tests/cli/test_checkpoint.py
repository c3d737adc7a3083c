import json

import pytest

from tidegate.core.errors import NotACheckpointError, TidegateError


def test_a_checkpoint_is_shown_with_what_is_committed_and_planned(invoke, local_checkpoint):
    local_checkpoint.batches(2).offset(2)
    result = invoke("checkpoint", "show", str(local_checkpoint.path))
    assert result.exit_code == 0
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in result.stdout.splitlines()]
    for row in (
        ["state", "pending"],
        ["query id", local_checkpoint.query_id],
        ["committed batch", "1"],
        ["planned batch", "2"],
        ["watermark", "-"],
        ["0", "files", "file log 1", "file log 2"],
    ):
        assert row in rows


def test_a_watermark_is_shown_as_a_time(invoke, local_checkpoint):
    local_checkpoint.offset(0).commit(0, watermark_ms=1_700_000_000_123)
    result = invoke("checkpoint", "show", str(local_checkpoint.path))
    assert "2023-11-14T22:13:20.123+00:00" in result.stdout


def test_a_checkpoint_is_printed_as_json(invoke, local_checkpoint):
    local_checkpoint.batch(0, {"logOffset": 4})
    result = invoke("checkpoint", "show", str(local_checkpoint.path), "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "state": "committed",
        "query_id": local_checkpoint.query_id,
        "committed_batch": 0,
        "planned_batch": 0,
        "watermark_ms": 0,
        "sources": [
            {
                "source": "0",
                "kind": "files",
                "committed": {"logOffset": 4},
                "planned": {"logOffset": 4},
            }
        ],
    }


def test_a_checkpoint_on_another_store_is_shown(invoke, new_checkpoint):
    checkpoint = new_checkpoint().batch(7)
    result = invoke("checkpoint", "show", str(checkpoint.path), "--json")
    assert json.loads(result.stdout)["committed_batch"] == 7


def test_an_empty_folder_is_a_query_that_never_ran(invoke, tmp_path):
    (tmp_path / "empty").mkdir()
    result = invoke("checkpoint", "show", str(tmp_path / "empty"), "--json")
    assert json.loads(result.stdout)["state"] == "never_ran"


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_a_checkpoint_that_is_broken_is_shown_with_its_problem(invoke, local_checkpoint, arguments):
    local_checkpoint.batch(0).write("offsets/0", "")
    result = invoke("checkpoint", "show", str(local_checkpoint.path), *arguments)
    assert "corrupt" in result.stdout
    assert "offsets/0 is corrupt: it is empty" in result.stdout.replace("\n", "")


def test_what_keeps_a_query_from_starting_again_is_shown(invoke, local_checkpoint):
    local_checkpoint.batches(3).delete("offsets/1")
    told = f"{local_checkpoint.path}/offsets/1 is missing, and Spark would fail with "
    shown = json.loads(invoke("checkpoint", "show", str(local_checkpoint.path), "--json").stdout)
    assert (shown["state"], shown["committed_batch"]) == ("committed", 2)
    assert shown["obstacle"].startswith(told)
    assert "problem" not in shown
    lines = invoke("checkpoint", "show", str(local_checkpoint.path)).stdout.splitlines()
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines]
    assert [row[0] for row in rows if row and row[0] in {"problem", "obstacle"}] == ["obstacle"]


def test_what_is_not_wrong_is_not_shown(invoke, local_checkpoint):
    local_checkpoint.batches(3)
    for arguments in ((), ("--json",)):
        result = invoke("checkpoint", "show", str(local_checkpoint.path), *arguments)
        assert "problem" not in result.stdout
        assert "obstacle" not in result.stdout


@pytest.mark.parametrize("text", ["[/b]", "[red]x", "[link=x]"])
def test_what_a_broken_file_holds_is_shown_and_not_obeyed(invoke, local_checkpoint, text):
    local_checkpoint.metadata().write("offsets/0", f"{text}\n")
    result = invoke("checkpoint", "show", str(local_checkpoint.path))
    assert result.exit_code == 0
    assert text in result.stdout


@pytest.mark.parametrize("name", ["a[bold]b", "a[/b]c"])
def test_a_folder_with_brackets_is_shown_by_its_name(invoke, tmp_path, name):
    (tmp_path / name / "offsets").mkdir(parents=True)
    result = invoke("checkpoint", "show", str(tmp_path / name))
    assert result.exit_code == 0
    assert name in result.stdout.replace("\n", "")


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("missing", "There is no checkpoint at {path}: the path does not exist."),
        ("a_file", "{path} is a file, and a checkpoint is a folder."),
        ("other", "{path} is not a checkpoint: it has none of metadata, offsets/ and commits/."),
    ],
)
def test_what_is_no_checkpoint_is_told(invoke, tmp_path, path, told):
    (tmp_path / "a_file").touch()
    (tmp_path / "other" / "things").mkdir(parents=True)
    error = invoke("checkpoint", "show", str(tmp_path / path)).exception
    assert isinstance(error, NotACheckpointError)
    assert str(error).startswith(told.format(path=tmp_path / path))


def test_no_checkpoint_is_exit_code_2_and_one_message(call, tmp_path):
    result = call("checkpoint", "show", str(tmp_path / "missing"))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("tidegate: There is no checkpoint at ")
    assert result.stderr.count("\n") == 1


def test_a_store_that_is_not_known_is_an_error_of_ours(invoke):
    error = invoke("checkpoint", "show", "nosuch://bucket/x").exception
    assert isinstance(error, TidegateError)
    assert "nosuch" in str(error)


@pytest.mark.parametrize("arguments", [("checkpoint",), ("checkpoint", "show"), ()])
def test_a_command_without_its_arguments_says_how_it_is_used(invoke, arguments):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert "Usage: tidegate" in result.output
