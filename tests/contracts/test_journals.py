"""Every journal keeps the same promises."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from backedge.adapters.journals.memory import MemoryJournal
from backedge.adapters.journals.sqlite import SqliteJournal
from backedge.core.errors import JournalConflict, RunHeld
from backedge.ports import Append
from backedge.testing import JournalContract


class TestMemoryJournal(JournalContract):
    @pytest.fixture
    def journal(self) -> MemoryJournal:
        return MemoryJournal()


class InOtherWords(MemoryJournal):
    """A journal of somebody else: it keeps the promises, and words its errors and holders as it likes."""

    async def append(self, entry: Append) -> None:
        try:
            await super().append(entry)
        except JournalConflict as error:
            raise JournalConflict("you are late") from error

    def claim(self, run: str) -> None:
        try:
            super().claim(run)
        except RunHeld as error:
            raise RunHeld(run, "pod 7") from error

    def holder(self, run: str) -> str | None:
        return super().holder(run) and "pod 7"


class TestJournalInOtherWords(JournalContract):
    @pytest.fixture
    def journal(self) -> InOtherWords:
        return InOtherWords()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_conflict_says_what_was_got_and_expected_and_a_claim_who_has_it(kind: str, tmp_path: Path) -> None:
    journal = MemoryJournal() if kind == "memory" else SqliteJournal(tmp_path / "journal.db")
    with pytest.raises(JournalConflict, match="'r' has 0 events, expected 1: reload and decide again"):
        asyncio.run(journal.append(Append("r", 1, (b"{}",))))
    journal.claim("r")
    with pytest.raises(RunHeld, match="run 'r' is being executed by this process"):
        journal.claim("r")
    assert journal.holder("r") == "this process"
    if isinstance(journal, SqliteJournal):
        journal.close()


class TestSqliteJournal(JournalContract):
    @pytest.fixture
    def journal(self, tmp_path: Path) -> Iterator[SqliteJournal]:
        journal = SqliteJournal(tmp_path / "journal.db")
        yield journal
        journal.close()


class TestSqliteJournalWithNormalDurability(JournalContract):
    @pytest.fixture
    def journal(self, tmp_path: Path) -> Iterator[SqliteJournal]:
        journal = SqliteJournal(tmp_path / "journal.db", durability="normal")
        yield journal
        journal.close()
