"""The attempts that are under way in a workspace, and which others each of them shared it with.

An attempt answers only for changes that no other can have made. Others may belong to other runs, and to other processes of
backedge, so what each of them may change is written down in files that all of them read.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from backedge.adapters.agents.process_tree import Identity, lives, row_of
from backedge.core.ready_types import make_ready

EVERYTHING = ("**",)
FORGOTTEN = 3600.0
"""Seconds after which an attempt without an end is no longer under way, if its process is gone."""


class SharedAttempt(msgspec.Struct, frozen=True):
    """One attempt, and what it may change. Times are seconds since the machine was started."""

    writes: tuple[str, ...] | None
    process: tuple[int, str]
    began: float
    ended: float | None = None

    @property
    def globs(self) -> Sequence[str]:
        return EVERYTHING if self.writes is None else self.writes


make_ready(SharedAttempt)


class UnderWay:
    """What is under way in one workspace."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def begin(self, run: str, step: str, writes: Sequence[str] | None) -> None:
        """An attempt begins. `writes` are the globs of what it may change, None if that is everything."""
        with self._lock:
            self._forget()
            self._write(_name(run, step), SharedAttempt(None if writes is None else tuple(writes), _me(), _now()))

    def end(self, run: str, step: str) -> list[Sequence[str]] | None:
        """An attempt has ended. Returns the globs of all that were under way with it at any time; None if it did not begin
        in this process."""
        name = _name(run, step)
        with self._lock:
            every = self._read()
            own = every.pop(name, None)
            if own is None or own.ended is not None or own.process != _me():
                return None
            self._write(name, msgspec.structs.replace(own, ended=_now()))
            return [each.globs for each in every.values() if each.ended is None or each.ended >= own.began]

    @contextmanager
    def met(self, run: str, name: str, files: Sequence[str]) -> Iterator[None]:
        """Let attempts that are under way know that these files are not changed by them, but by backedge itself."""
        self.begin(run, name, None if any(set(file) & set("*?[{") for file in files) else files)
        try:
            yield
        finally:
            self.end(run, name)

    @property
    def writing(self) -> bool:
        """Whether an attempt is under way that may change files."""
        return any(each.globs for each in self._living())

    @property
    def working(self) -> bool:
        """Whether any attempt is under way. One that may change nothing could still change files and take that back."""
        return bool(self._living())

    def _living(self) -> list[SharedAttempt]:
        return [each for each in self._read().values() if each.ended is None and lives(Identity(*each.process))]

    def _forget(self) -> None:
        """Remove what no attempt can have met that is still under way."""
        every, now = self._read(), _now()
        for name, each in every.items():
            gone = each.ended is None and not lives(Identity(*each.process))
            if each.began > now or (gone and now - each.began > FORGOTTEN):
                (self._folder / name).unlink(missing_ok=True)
        since = min((each.began for each in every.values() if each.ended is None), default=now)
        for name, each in every.items():
            if each.ended is not None and each.ended < since:
                (self._folder / name).unlink(missing_ok=True)

    def _read(self) -> dict[str, SharedAttempt]:
        found = {}
        for path in self._folder.glob("*.json"):
            with suppress(OSError, msgspec.DecodeError):
                found[path.name] = msgspec.json.decode(path.read_bytes(), type=SharedAttempt)
        return found

    def _write(self, name: str, attempt: SharedAttempt) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor, draft = tempfile.mkstemp(prefix=".", dir=self._folder)
        with open(descriptor, "wb") as file:
            file.write(msgspec.json.encode(attempt))
        os.replace(draft, self._folder / name)


def _name(run: str, step: str) -> str:
    both = "\0".join((run, step)).encode()
    return f"{sha256(both).hexdigest()[:32]}.json"


def _now() -> float:
    return time.monotonic()


def _me() -> tuple[int, str]:
    row = row_of(os.getpid())
    return (row.identity.pid, row.identity.began) if row is not None else (os.getpid(), "")
