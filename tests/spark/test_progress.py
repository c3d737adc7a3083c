"""A line in the log now and then, while a run goes on."""

import json
import re
import threading

from tidegate.spark import progress


def test_a_long_run_says_how_far_it_is(runs, pipeline_of, settings, monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.2)
    folder = settings.locate("landing")
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"{number}.json").write_text(json.dumps({"id": number}))
    source = {
        "type": "files",
        "path": "landing",
        "format": "json",
        "schema": "id long",
        "max_files_per_trigger": 1,
    }
    runs.run(pipeline_of(source))
    lines = capsys.readouterr().out.splitlines()
    told = [line for line in lines if " so far, " in line]
    assert not [line for line in lines if "no progress can be told" in line]
    assert re.search(r"tidegate: p: \d+ s so far, 0 of 3 files committed", told[0])
    assert any(re.search(r"[12] of 3 files committed, about .* left", line) for line in told)
    assert any("is under way" in line for line in told)
    batches = [
        line for line in lines if re.match(r"tidegate: p batch \d: 1 rows read \(file log", line)
    ]
    assert len(batches) == 3


def test_what_cannot_be_told_stops_nothing(monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.01)
    tried = threading.Event()

    def fail():
        tried.set()
        raise OSError("the store is away")

    with progress.tell_now_and_then("p", fail):
        assert tried.wait(10)
    assert "tidegate: p: no progress can be told: the store is away" in capsys.readouterr().out


def test_a_short_run_says_nothing(capsys):
    with progress.tell_now_and_then("p", lambda: "x"):
        pass
    assert capsys.readouterr().out == ""
