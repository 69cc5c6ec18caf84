"""Faults made by wrapping a port: the code under test is the code that ships."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from backedge.ports import (
    Append,
    Claim,
    JournalWithClaims,
    Listener,
    LostListener,
    OpenEscalation,
    Record,
    RunHead,
)


class Crashed(BaseException):
    """The simulated process died. Not an Exception, so that no handler catches it by accident."""


class CrashingJournal:
    """Passes everything through until the `dies_at`-th append, where the process seems to die.

    With `when="before"` that append is not stored; with `when="after"` it is, but its caller never learns it. From
    then on every call raises Crashed; claims made through it are gone and its listeners are no longer called, as after
    a real crash, so that a second engine can continue with the inner journal.
    """

    def __init__(self, journal: JournalWithClaims, dies_at: int, when: Literal["before", "after"] = "before") -> None:
        self._journal = journal
        self._dies_at = dies_at
        self._when = when
        self._held: dict[str, Claim] = {}
        self._subscriptions: list[Callable[[], None]] = []
        self.appends = 0
        self.crashed = False

    async def append(self, entry: Append) -> int:
        self._check()
        self.appends += 1
        dies = self.appends == self._dies_at
        if dies and self._when == "before":
            await self._crash()
        last = await self._journal.append(entry)
        if dies:
            await self._crash()
        self._check()  # another append may have been the fatal one meanwhile
        return last

    async def read(self, run: str, after: int = 0) -> Sequence[Record]:
        self._check()
        return await self._journal.read(run, after)

    async def runs(self, limit: int | None = None, after: str | None = None) -> Sequence[RunHead]:
        self._check()
        return await self._journal.runs(limit, after)

    async def open_runs(self, limit: int | None = None, after: str | None = None) -> Sequence[RunHead]:
        self._check()
        return await self._journal.open_runs(limit, after)

    async def open_escalations(self, escalation: str | None = None) -> Sequence[OpenEscalation]:
        self._check()
        return await self._journal.open_escalations(escalation)

    async def payload(self, digest: str) -> bytes:
        self._check()
        return await self._journal.payload(digest)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._check()
        unsubscribe = self._journal.subscribe(listener)
        self._subscriptions.append(unsubscribe)
        return unsubscribe

    async def claim(self, run: str) -> Claim:
        self._check()
        claim = self._held[run] = await self._journal.claim(run)
        return claim

    async def holds(self, claim: Claim) -> bool:
        self._check()
        return await self._journal.holds(claim)

    async def holder(self, run: str) -> str | None:
        self._check()
        return await self._journal.holder(run)

    async def release(self, claim: Claim) -> None:
        self._check()
        await self._journal.release(claim)
        self._held.pop(claim.run, None)

    def on_lost(self, listener: LostListener) -> Callable[[], None]:
        self._check()
        unsubscribe = self._journal.on_lost(listener)
        self._subscriptions.append(unsubscribe)
        return unsubscribe

    async def close(self) -> None:
        self._check()
        await self._journal.close()

    def _check(self) -> None:
        if self.crashed:
            raise Crashed(f"this journal crashed at append {self._dies_at}: use the one inside it")

    async def _crash(self) -> None:
        self.crashed = True
        for claim in self._held.values():
            await self._journal.release(claim)
        for unsubscribe in self._subscriptions:
            unsubscribe()
        self._check()
