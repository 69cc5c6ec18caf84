"""Faults made by wrapping a port: the code under test is the code that ships."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from backedge.ports import Append, Claims, Journal, Listener, Record, RunHead


class JournalWithClaims(Journal, Claims, Protocol):
    """What the journals of backedge are: the log, and who executes what."""


class Crashed(BaseException):
    """The simulated process died. Not an Exception, so that no handler catches it by accident."""


class CrashingJournal:
    """Passes everything through until the `dies_at`-th append, where the process seems to die.

    With `when="before"` that append is not stored; with `when="after"` it is, but its caller never learns it. From
    then on every call raises Crashed; claims made through it are gone and its listeners hear nothing, as after a real
    crash, so that a second engine can go on with the journal inside.
    """

    def __init__(self, journal: JournalWithClaims, dies_at: int, when: Literal["before", "after"] = "before") -> None:
        self._journal = journal
        self._dies_at = dies_at
        self._when = when
        self._held: set[str] = set()
        self._subscriptions: list[Callable[[], None]] = []
        self.appends = 0
        self.crashed = False

    async def append(self, entry: Append) -> None:
        self._check()
        self.appends += 1
        dies = self.appends == self._dies_at
        if dies and self._when == "before":
            self._crash()
        await self._journal.append(entry)
        if dies:
            self._crash()
        self._check()  # another append may have been the fatal one meanwhile

    async def read(self, run: str, after: int = 0) -> Sequence[Record]:
        self._check()
        return await self._journal.read(run, after)

    async def runs(self) -> Sequence[RunHead]:
        self._check()
        return await self._journal.runs()

    async def payload(self, digest: str) -> bytes:
        self._check()
        return await self._journal.payload(digest)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._check()
        unsubscribe = self._journal.subscribe(listener)
        self._subscriptions.append(unsubscribe)
        return unsubscribe

    def claim(self, run: str) -> None:
        self._check()
        self._journal.claim(run)
        self._held.add(run)

    def holder(self, run: str) -> str | None:
        self._check()
        return self._journal.holder(run)

    def release(self, run: str) -> None:
        self._check()
        self._journal.release(run)
        self._held.discard(run)

    def _check(self) -> None:
        if self.crashed:
            raise Crashed(f"this journal crashed at append {self._dies_at}: use the one inside it")

    def _crash(self) -> None:
        self.crashed = True
        for run in self._held:
            self._journal.release(run)
        for unsubscribe in self._subscriptions:
            unsubscribe()
        self._check()
