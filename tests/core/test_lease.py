"""Two processes never hold the lease of one checkpoint, on any store."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tidegate.core.errors import LeaseHeldError, LeaseLostError
from tidegate.core.holder import Holder
from tidegate.core.lease import LeaseFolder, hold_lease, take_lease

SECONDS = 0.6
FOREIGN = Holder("run elsewhere, try 1", "elsewhere", 4711)
"""A process on another machine: whether it is alive, only its renewals tell."""


@pytest.fixture
def folder(store):
    return LeaseFolder(store / "lease")


@pytest.fixture
def told():
    return []


def take(folder, what="run mine", *, told=None, waits=True):
    tell = (told if told is not None else []).append
    return take_lease(folder, what, seconds=SECONDS, waits=waits, tell=tell)


def be_held_by(folder, holder, **changes):
    take(folder, "to be replaced")
    record = replace(folder.find_newest(), holder=holder, **changes)
    folder.write(record)
    return record


def test_a_lease_is_taken_and_released(folder, told):
    first = take(folder)
    assert folder.find_held().holder.what == "run mine"
    first.check()
    first.release()
    assert folder.find_held() is None
    second = take(folder, told=told)
    assert second.token == first.token + 1
    assert told == []


def test_a_second_process_is_refused_and_told_who_holds_it(folder):
    with (
        hold_lease(folder, "run first, try 2", seconds=SECONDS),
        pytest.raises(
            LeaseHeldError, match=r"held by run first, try 2 \(process \d+ on .+\) since"
        ),
    ):
        take(folder)


def test_one_that_does_not_wait_is_refused_at_once(folder):
    be_held_by(folder, FOREIGN)
    began = time.monotonic()
    with pytest.raises(LeaseHeldError, match="run elsewhere"):
        take(folder, waits=False)
    assert time.monotonic() - began < SECONDS / 2


def test_a_process_of_this_machine_that_is_dead_is_followed_at_once(folder, told):
    process = subprocess.Popen(["sleep", "60"])
    holder = replace(Holder.here("run dead"), pid=process.pid)
    holder = replace(holder, started=_start_of(process.pid))
    be_held_by(folder, holder)
    assert folder.find_held()
    process.kill()
    process.wait()
    assert folder.find_held() is None
    began = time.monotonic()
    take(folder, told=told, waits=False)
    assert time.monotonic() - began < SECONDS / 2
    assert told[0].startswith("took over the lease of run dead (process")


def test_an_id_that_was_given_again_is_another_process(folder):
    be_held_by(folder, replace(Holder.here("run dead"), started="1"))
    take(folder, waits=False)


def test_a_silent_holder_elsewhere_is_followed_after_its_time(folder, told):
    be_held_by(folder, FOREIGN)
    began = time.monotonic()
    take(folder, told=told)
    assert SECONDS <= time.monotonic() - began < SECONDS * 3
    assert "run elsewhere" in told[0]


def test_a_clock_that_is_ahead_or_behind_does_not_matter(folder):
    for minutes in (-4, 4):
        renewed = (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat()
        be_held_by(folder, FOREIGN, renewed_at=renewed)
        began = time.monotonic()
        take(folder).release()
        assert time.monotonic() - began >= SECONDS


def test_a_holder_that_was_silent_for_long_needs_no_watch(folder):
    renewed = (datetime.now(UTC) - timedelta(minutes=6)).isoformat()
    be_held_by(folder, FOREIGN, renewed_at=renewed)
    take(folder, waits=False)


def test_a_lease_file_that_is_broken_is_watched_and_then_followed(folder, monkeypatch):
    take(folder)
    (folder.folder / "1.json").write_text("{")
    with pytest.raises(LeaseHeldError, match="cannot be read"):
        take(folder, waits=False)
    monkeypatch.setattr("tidegate.core.lease._UNREADABLE_SECONDS", SECONDS)
    assert take(folder).token == 2


def test_a_stale_holder_is_fenced(folder):
    stale = be_held_by_us(folder)
    taker = take(folder, "run taker")
    taker.check()
    with pytest.raises(LeaseLostError, match="taken over by run taker"):
        stale.check()
    stale.renew()
    with pytest.raises(LeaseLostError):
        stale.check()
    stale.release()
    taker.check()
    assert folder.find_held().holder.what == "run taker"


def be_held_by_us(folder):
    """Take a lease as a process of another machine would: nobody here can tell that it lives."""
    lease = take(folder)
    lease._write(replace(lease._record, holder=FOREIGN))
    return lease


def test_a_holder_that_comes_back_in_time_goes_on(folder):
    lease = take(folder)
    long_ago = "2026-01-01T00:00:00.000+00:00"
    lease._write(replace(lease._record, renewed_at=long_ago))
    lease._renewed -= SECONDS * 2
    lease.check()
    assert folder.find_newest().renewed_at > long_ago


def test_a_lease_whose_folder_was_deleted_is_lost(folder):
    lease = take(folder)
    folder.folder.fs.rm(folder.folder.path, recursive=True)
    with pytest.raises(LeaseLostError, match="gone"):
        lease.check()


def test_a_lease_is_renewed_in_the_background_and_its_loss_is_told(folder):
    lost = threading.Event()
    with hold_lease(folder, "run long", seconds=SECONDS) as lease:
        lease.on_loss = lost.set
        first = folder.find_newest().renewed_at
        assert _await(lambda: folder.find_newest().renewed_at > first)
        assert not lost.is_set()
        folder.write(replace(folder.find_newest(), token=lease.token + 1, holder=FOREIGN))
        assert lost.wait(SECONDS * 5)
    assert folder.find_held().holder == FOREIGN


def test_of_many_at_once_just_one_gets_it(folder):
    def try_to_take(number):
        try:
            return take(folder, f"run {number}", waits=False)
        except LeaseHeldError:
            return None

    for _ in range(5):
        with ThreadPoolExecutor(8) as threads:
            taken = [lease for lease in threads.map(try_to_take, range(8)) if lease]
        assert len(taken) == 1
        taken[0].check()
        taken[0].release()


def test_old_tokens_are_cleared_away(folder):
    for _ in range(5):
        take(folder).release()
    assert folder.list_tokens() == [4, 5]


@pytest.mark.skipif(sys.platform != "linux", reason="tells processes apart by /proc")
def test_a_process_that_is_stopped_loses_the_lease_and_knows_it_when_it_goes_on(tmp_path):
    code = (
        "import sys, time\n"
        "from upath import UPath\n"
        "from tidegate.core.lease import LeaseFolder, hold_lease\n"
        f"with hold_lease(LeaseFolder(UPath(sys.argv[1])), 'run stopped', seconds={SECONDS}) as lease:\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.readline()\n"
        "    lease.check()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "lease")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    os.kill(process.pid, signal.SIGSTOP)
    from upath import UPath

    folder = LeaseFolder(UPath(tmp_path / "lease"))
    lease = take(folder, "run taker")
    os.kill(process.pid, signal.SIGCONT)
    _, errors = process.communicate("\n", timeout=30)
    assert "LeaseLostError: The checkpoint's lease was taken over by run taker" in errors
    lease.check()


def test_a_lease_is_plain_json(folder):
    take(folder)
    written = json.loads((folder.folder / "1.json").read_text())
    assert written["holder"]["what"] == "run mine"
    assert written["token"] == 1


def _start_of(pid):
    from tidegate.core import holder

    return holder._find_start(pid)


def _await(condition, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False
