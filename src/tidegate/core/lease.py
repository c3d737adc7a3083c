"""The lease on a checkpoint: two processes must never write to one at the same time.

    lease/<token>.json    who holds it; the newest token counts

Whoever wants the lease creates the file of the next token, which only one of several can. It renews
its own file while it works, and marks it as released at the end. A file that is not renewed for as
long as it says is of a process that is dead or stands still, and is followed by the next token. A
process that comes back then finds the newer token before it writes: the token fences it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Self

from pydantic import TypeAdapter, ValidationError
from upath import UPath

from tidegate.core.checkpoint.belongings import find_belongings
from tidegate.core.errors import LeaseHeldError, LeaseLostError
from tidegate.core.holder import Holder
from tidegate.core.storage import create_text, list_names, read_bytes, write_text

_SUFFIX = ".json"
_RENEWALS = 3
"""How often a lease is renewed while it lasts."""
_CLOCKS_DIFFER = timedelta(minutes=5)
"""By how much the clocks of two machines may be apart."""


@dataclass(frozen=True)
class LeaseRecord:
    """A lease as its file tells it."""

    token: int
    holder: Holder
    seconds: float
    """How long it lasts without being renewed."""
    taken_at: str
    renewed_at: str
    released_at: str | None = None

    def is_over(self) -> bool:
        """Whether the lease is certainly over, by what is written and known right now."""
        if self.released_at is not None or self.holder.is_known_dead():
            return True
        silent = datetime.now(UTC) - datetime.fromisoformat(self.renewed_at)
        return silent > timedelta(seconds=self.seconds) + _CLOCKS_DIFFER

    def refuse(self) -> LeaseHeldError:
        """Say that somebody else must wait."""
        return LeaseHeldError(
            f"The checkpoint is held by {self.holder} since {self.taken_at}, last renewed at "
            f"{self.renewed_at}.",
            cause="Two processes that write to one checkpoint would write rows twice.",
            remedy="Wait until it has ended, or stop it. A run takes over a dead one's lease after "
            f"{self.seconds:g} s; a tool, which does not wait, once that is certain.",
        )


_RECORD: TypeAdapter[LeaseRecord] = TypeAdapter(LeaseRecord)
_NOBODY = Holder("somebody whose lease cannot be read", "?", 0)
_UNREADABLE_SECONDS = 30


@dataclass(frozen=True)
class LeaseFolder:
    """The leases of one checkpoint."""

    folder: UPath

    @classmethod
    def beside(cls, checkpoint: UPath) -> Self:
        """Open the leases of a checkpoint."""
        return cls(find_belongings(checkpoint) / "lease")

    def find_newest(self) -> LeaseRecord | None:
        """Find the newest lease, be it over or not."""
        while tokens := self.list_tokens():
            try:
                return self._read(tokens[-1])
            except FileNotFoundError:
                continue  # followed by a newer one, and cleared away
        return None

    def find_held(self) -> LeaseRecord | None:
        """Find the lease that somebody holds; one that was not renewed in time may yet be."""
        newest = self.find_newest()
        return None if newest is None or newest.is_over() else newest

    def refuse_held(self) -> None:
        """Refuse to go on while somebody holds the lease."""
        held = self.find_held()
        if held:
            raise held.refuse()

    def list_tokens(self) -> list[int]:
        """List the tokens that were given, the oldest of them cleared away."""
        names = (name.removesuffix(_SUFFIX) for name in list_names(self.folder))
        return sorted(int(name) for name in names if name.isascii() and name.isdigit())

    def write(self, record: LeaseRecord) -> None:
        """Write a lease over what its holder wrote before."""
        write_text(self._name(record.token), _spell(record))

    def create(self, record: LeaseRecord) -> bool:
        """Write a lease whose token nobody has yet; say whether that is so."""
        if not create_text(self._name(record.token), _spell(record)):
            return False
        tokens = self.list_tokens()
        if tokens[-1] != record.token:
            # A listing that missed others made it too small.
            self._name(record.token).unlink(missing_ok=True)
            return False
        for token in tokens[:-2]:
            self._name(token).unlink(missing_ok=True)
        return True

    def _name(self, token: int) -> UPath:
        return self.folder / f"{token}{_SUFFIX}"

    def _read(self, token: int) -> LeaseRecord:
        try:
            return _RECORD.validate_json(read_bytes(self._name(token)))
        except ValidationError:
            # Whoever it is, time tells whether it is written anew; by itself it is never over.
            end_of_time = datetime.max.replace(tzinfo=UTC).isoformat()
            return LeaseRecord(token, _NOBODY, _UNREADABLE_SECONDS, "?", end_of_time)


class Lease:
    """A lease that this process holds."""

    def __init__(self, folder: LeaseFolder, record: LeaseRecord) -> None:
        self._folder = folder
        self._record = record
        self._renewed = time.monotonic()
        self._lock = threading.Lock()
        self.on_loss: Callable[[], None] = lambda: None
        """Called from the background, once, when another process has taken over."""

    @property
    def token(self) -> int:
        """The number by which the lease is told from all earlier ones."""
        return self._record.token

    def check(self) -> None:
        """Refuse to go on where the lease was taken over."""
        if time.monotonic() - self._renewed > self._record.seconds:
            self.renew()  # it may be taken over at any moment
        newest = self._folder.list_tokens()
        if newest and newest[-1] == self.token:
            return
        taker = self._folder.find_newest()
        raise LeaseLostError(
            f"The checkpoint's lease was taken over by {taker.holder}."
            if taker
            else "The checkpoint's lease is gone: its folder was deleted.",
            cause="This process stood still for longer than the lease lasts, so it was taken for dead."
            if taker
            else "",
            remedy="Nothing more is written by it; leave the work to the new holder."
            if taker
            else "Nothing more is written; find out who deleted the state folder.",
        )

    def renew(self) -> None:
        """Say that this process is alive."""
        with self._lock:
            if self._record.released_at is None:
                self._write(replace(self._record, renewed_at=_now()))
                self._renewed = time.monotonic()

    def release(self) -> None:
        """Let the next one have it without a wait."""
        with self._lock:
            if self._folder.list_tokens()[-1:] == [self.token]:
                self._write(replace(self._record, released_at=_now()))

    def _write(self, record: LeaseRecord) -> None:
        self._folder.write(record)
        self._record = record


def take_lease(
    folder: LeaseFolder,
    what: str,
    *,
    seconds: float,
    waits: bool = True,
    tell: Callable[[str], None] = print,
) -> Lease:
    """Take the lease, or refuse and name who holds it.

    A holder that nobody can say to be dead is watched for as long as its lease lasts, unless told
    not to wait: what it renews meanwhile is its own, and what it does not is taken over. So the
    clocks of two machines need not agree.
    """
    first, since = folder.find_newest(), time.monotonic()
    holder, newest = Holder.here(what), first
    while True:
        if newest is None or newest.is_over() or time.monotonic() - since > newest.seconds:
            record = _begin(newest, holder, seconds)
            if folder.create(record):
                if newest and newest.released_at is None:
                    tell(
                        f"took over the lease of {newest.holder}, silent since {newest.renewed_at}"
                    )
                return Lease(folder, record)
        elif not waits or first is None or _is_alive(first, newest):
            raise newest.refuse()
        else:
            time.sleep(min(newest.seconds / _RENEWALS / 4, 1.0))
        newest = folder.find_newest()


@contextmanager
def hold_lease(
    folder: LeaseFolder,
    what: str,
    *,
    seconds: float,
    waits: bool = True,
    tell: Callable[[str], None] = print,
) -> Iterator[Lease]:
    """Hold the lease for a while, renewed in the background; a loss is told as soon as it is seen."""
    lease = take_lease(folder, what, seconds=seconds, waits=waits, tell=tell)
    done = threading.Event()

    def keep() -> None:
        while not done.wait(seconds / _RENEWALS):
            try:
                lease.check()
                lease.renew()
            except LeaseLostError:
                lease.on_loss()
                return
            except OSError as error:
                # A store that is away for a moment is asked again; the next check tells the rest.
                tell(f"the lease cannot be renewed right now: {error}")

    keeper = threading.Thread(target=keep, name="tidegate-lease", daemon=True)
    keeper.start()
    try:
        yield lease
    finally:
        done.set()
        keeper.join()
        lease.release()


def _is_alive(first: LeaseRecord, newest: LeaseRecord) -> bool:
    return (first.token, first.renewed_at) != (newest.token, newest.renewed_at)


def _begin(newest: LeaseRecord | None, holder: Holder, seconds: float) -> LeaseRecord:
    now = _now()
    return LeaseRecord(newest.token + 1 if newest else 1, holder, seconds, now, now)


def _spell(record: LeaseRecord) -> str:
    return json.dumps(asdict(record), indent=2) + "\n"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
