"""Every journal keeps the same promises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from backedge.adapters.journals.memory import MemoryJournal
from backedge.adapters.journals.sqlite import SqliteJournal
from backedge.core.errors import JournalConflict, RunHeld
from backedge.ports import Append, Claim, JournalWithClaims, Listener
from backedge.testing import JournalContract


class TestMemoryJournal(JournalContract):
    kind: type[MemoryJournal] = MemoryJournal
    first: MemoryJournal | None = None

    def open(self, folder: Path) -> MemoryJournal:
        self.first = self.first or MemoryJournal()
        return self.kind(self.first)

    async def take_over(self, other: JournalWithClaims, run: str) -> Claim:
        assert isinstance(other, MemoryJournal)
        return other.take_over(run)


class InOtherWords(MemoryJournal):
    """A journal of somebody else: it keeps the promises, and words its errors and holders as it likes."""

    async def append(self, entry: Append) -> int:
        try:
            return await super().append(entry)
        except JournalConflict as error:
            raise JournalConflict("you are late") from error

    async def claim(self, run: str) -> Claim:
        try:
            return await super().claim(run)
        except RunHeld as error:
            raise RunHeld(run, "pod 7") from error

    async def holder(self, run: str) -> str | None:
        return await super().holder(run) and "pod 7"


class TestJournalInOtherWords(TestMemoryJournal):
    kind = InOtherWords


class ForcedJournal(SqliteJournal):
    """A SQLite journal that can take runs from living processes, as one with leases can when a lease has run out: it stores
    a newer fence, and its own lock does not count."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file = apsw.Connection(str(path))
        self._file.set_busy_timeout(5000)

    def take_over(self, run: str) -> Claim:
        fence = self._file.execute("UPDATE runs SET fence = fence + 1 WHERE run = ? RETURNING fence", (run,)).get
        self._claims[run] = Claim(run, fence, "another machine")
        return self._claims[run]

    async def close(self) -> None:
        self._file.close()
        await super().close()


class TestSqliteJournal(JournalContract):
    def open(self, folder: Path) -> SqliteJournal:
        return ForcedJournal(folder / "journal.db")

    async def take_over(self, other: JournalWithClaims, run: str) -> Claim:
        assert isinstance(other, ForcedJournal)
        return other.take_over(run)


class TestSqliteJournalWithNormalDurability(JournalContract):
    def open(self, folder: Path) -> SqliteJournal:
        return SqliteJournal(folder / "journal.db", durability="normal")


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_conflict_says_what_was_got_and_expected_and_a_claim_who_has_it(kind: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        journal = MemoryJournal() if kind == "memory" else SqliteJournal(tmp_path / "journal.db")
        with pytest.raises(JournalConflict, match="'r' has 0 events, expected 1: reload and decide again"):
            await journal.append(Append("r", 1, (b"{}",)))
        await journal.claim("r")
        with pytest.raises(RunHeld, match="run 'r' is being executed by this process"):
            await journal.claim("r")
        assert await journal.holder("r") == "this process"
        await journal.close()

    asyncio.run(scenario())


def test_a_journal_that_does_not_hear_other_writers_fails_the_contract(tmp_path: Path) -> None:
    class Deaf(SqliteJournal):
        def __init__(self) -> None:
            super().__init__(tmp_path / "journal.db")
            self.own: list[Listener] = []

        def subscribe(self, listener: Listener) -> Callable[[], None]:
            self.own.append(listener)
            return lambda: None

        async def append(self, entry: Append) -> int:
            last = await super().append(entry)
            for listener in self.own:
                listener(entry.run, last)
            return last

    first, second = Deaf(), Deaf()
    with pytest.raises(TimeoutError):
        JournalContract().test_two_instances_hear_each_other(first, second)
    asyncio.run(first.close())
    asyncio.run(second.close())
