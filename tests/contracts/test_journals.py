"""Every journal keeps the same promises."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backedge.adapters.journals.memory import MemoryJournal
from backedge.adapters.journals.sqlite import SqliteJournal
from backedge.testing import JournalContract


class TestMemoryJournal(JournalContract):
    @pytest.fixture
    def journal(self) -> MemoryJournal:
        return MemoryJournal()


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
