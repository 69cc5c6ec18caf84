"""Which journal a path or a URL means."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from backedge import Engine, MemoryJournal, SqliteJournal
from backedge.adapters.journals.opening import open_journal
from backedge.core.errors import JournalUnavailable


@pytest.mark.parametrize(
    ("place", "file"),
    [
        ("j.db", "j.db"),
        (Path("j.db"), "j.db"),
        ("sqlite:///j.db", "j.db"),
        ("sqlite:///deep/my%20journal.db", "deep/my journal.db"),
        ("sqlite:///{folder}/j.db", "j.db"),
        ("a:b.db", "a:b.db"),
        (Path("postgresql:"), "postgresql:"),
    ],
)
def test_a_path_or_a_sqlite_url_is_a_file(
    place: str | Path, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    journal = open_journal(place.format(folder=tmp_path) if isinstance(place, str) else place)
    assert isinstance(journal, SqliteJournal)
    asyncio.run(journal.close())
    assert (tmp_path / file).is_file()


def test_memory_is_a_journal_that_is_gone_with_its_process() -> None:
    assert isinstance(open_journal("memory:"), MemoryJournal)


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("postgresql://me:secret@host/db", r"postgresql://… is not supported yet: use a path"),
        ("postgres://host/db", r"postgres://… is not supported yet"),
        ("mysql://host/db", "a journal at mysql: is unknown: expected a path, sqlite:///PATH or memory:"),
        ("sqlite://j.db", "'sqlite://j.db' names no file: expected sqlite:///PATH"),
        ("sqlite:///", "names no file"),
        ("memory://", "is not a file: a journal in memory ends with its process"),
    ],
)
def test_a_url_of_no_journal_that_there_is_says_what_is_possible(place: str, problem: str) -> None:
    with pytest.raises(JournalUnavailable, match=problem) as refusal:
        Engine(place)
    assert "secret" not in str(refusal.value)
