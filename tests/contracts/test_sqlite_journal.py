"""The SQLite journal and its file: what it refuses, what it survives, what it leaves behind."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.histories.recorded import histories, versions

from backedge.adapters.journals.sqlite import SqliteJournal
from backedge.core.chain import genesis, links
from backedge.core.errors import JournalConflict, JournalDamaged, JournalTooNew, JournalUnavailable
from backedge.engine.store import open_escalations
from backedge.ports import Append

BODY = b'{"text":"' + b"x" * 3000 + b'"}'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def filled(path: Path, events: int = 100) -> Path:
    """A closed journal with one run, `r`, on many pages."""
    journal = SqliteJournal(path)
    asyncio.run(journal.append(Append("r", 0, (BODY,) * events)))
    asyncio.run(journal.close())
    return path


def read(path: Path) -> int:
    journal = SqliteJournal(path)
    try:
        return len(asyncio.run(journal.read("r")))
    finally:
        asyncio.run(journal.close())


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Without the rights of root, whom a read-only file does not stop."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    assert read(filled(tmp_path / "a" / "b" / "journal.db")) == 100


def test_an_empty_file_becomes_a_journal(path: Path) -> None:
    path.touch()
    assert read(filled(path)) == 100


def test_the_events_are_readable_text_in_any_shell(path: Path) -> None:
    filled(path, 1)
    rows = apsw.Connection(str(path)).execute("SELECT seq, typeof(body), body ->> '$.text', length(link) FROM events")
    assert list(rows) == [(1, "text", "x" * 3000, 32)]


def test_a_journal_of_a_newer_version_is_refused(path: Path) -> None:
    filled(path)
    apsw.Connection(str(path)).execute("PRAGMA user_version = 7")
    with pytest.raises(JournalTooNew, match="format 7, this backedge knows formats up to 2: install a newer"):
        read(path)


def test_a_database_of_something_else_is_refused_and_left_alone(path: Path) -> None:
    with apsw.Connection(str(path)) as other:
        other.execute("CREATE TABLE songs (title)")
    before = path.read_bytes()
    with pytest.raises(JournalDamaged, match="tables songs, expected a journal"):
        SqliteJournal(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("contents", [b"hello", b"not a database " * 1000])
def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path, contents: bytes) -> None:
    path.write_bytes(contents)
    with pytest.raises(JournalDamaged, match=r"journal\.db is not a valid journal"):
        SqliteJournal(path)
    assert path.read_bytes() == contents


def test_a_journal_without_its_tables_is_refused(path: Path) -> None:
    filled(path)
    apsw.Connection(str(path)).execute("DROP TABLE events")
    with pytest.raises(JournalDamaged, match="no such table"):
        read(path)


@pytest.mark.parametrize("page", [0, 1, 5, 30])
def test_overwritten_pages_are_reported(path: Path, page: int) -> None:
    filled(path)
    with path.open("r+b") as file:
        file.seek(page * 4096 + 100)
        file.write(b"\xff" * (4096 - 100) + b"\xff" * 40_000)
    with pytest.raises(JournalDamaged, match="restore a backup"):
        read(path)


@pytest.mark.parametrize("size", [50, 4096, 10_000, 200_000])
def test_a_truncated_file_is_reported(path: Path, size: int) -> None:
    os.truncate(filled(path), size)
    with pytest.raises(JournalDamaged):
        read(path)


def test_counts_that_do_not_add_up_are_reported(path: Path) -> None:
    filled(path)
    apsw.Connection(str(path)).execute("UPDATE runs SET seq = 50")
    journal = SqliteJournal(path)
    with pytest.raises(JournalDamaged, match="UNIQUE"):
        asyncio.run(journal.append(Append("r", 50, (b"{}",))))
    asyncio.run(journal.close())


def test_a_damaged_run_does_not_hold_up_the_others(path: Path) -> None:
    filled(path)
    apsw.Connection(str(path)).execute("UPDATE runs SET seq = 50")
    journal = SqliteJournal(path)

    async def scenario() -> list[int | BaseException]:
        entries = [
            Append("a", 0, (b"{}",)),
            Append("r", 50, (b"{}",)),
            Append("b", 7, (b"{}",)),
            Append("c", 0, (b"{}",)),
        ]
        return list(await asyncio.gather(*map(journal.append, entries), return_exceptions=True))

    fates = [type(fate) for fate in asyncio.run(scenario())]
    assert fates == [int, JournalDamaged, JournalConflict, int]
    assert [head.run for head in asyncio.run(journal.runs())] == ["c", "a", "r"]
    asyncio.run(journal.close())


def test_a_name_that_is_not_text_fails_alone(path: Path) -> None:
    journal = SqliteJournal(path)

    async def scenario() -> list[int | BaseException]:
        entries = [Append("a", 0, (b"{}",)), Append("\udcff", 0, (b"{}",))]
        return list(await asyncio.gather(*map(journal.append, entries), return_exceptions=True))

    assert [type(fate) for fate in asyncio.run(scenario())] == [int, UnicodeEncodeError]
    asyncio.run(journal.close())


def test_a_copy_made_without_a_write_ahead_log_gets_one(path: Path) -> None:
    filled(path)
    copy = path.with_name("copy.db")
    apsw.Connection(str(path)).execute("VACUUM INTO ?", (str(copy),))
    assert read(copy) == 100
    assert apsw.Connection(str(copy)).execute("PRAGMA journal_mode").get == "wal"


@pytest.mark.parametrize("name", ["/proc/journal.db", "/proc/missing/journal.db", "a file/journal.db", "a folder"])
def test_a_path_that_cannot_be_opened_is_reported(tmp_path: Path, name: str) -> None:
    (tmp_path / "a file").touch()
    (tmp_path / "a folder").mkdir()
    with pytest.raises(JournalUnavailable, match="check path and rights"):
        SqliteJournal(tmp_path / name)


def test_a_read_only_folder_is_reported() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o555)
        with ordinary_user(), pytest.raises(JournalUnavailable, match="check path and rights"):
            SqliteJournal(Path(folder, "journal.db"))


def test_a_read_only_file_is_reported() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = filled(Path(folder, "journal.db"))
        path.chmod(0o444)
        os.chmod(folder, 0o777)
        with ordinary_user(), pytest.raises(JournalUnavailable, match="read-only"):
            SqliteJournal(path)


def test_a_closed_journal_says_so(path: Path) -> None:
    journal = SqliteJournal(path)
    asyncio.run(journal.claim("r"))
    asyncio.run(journal.close())
    asyncio.run(journal.close())
    for call in (journal.append(Append("r", 0, (b"{}",))), journal.read("r"), journal.runs()):
        with pytest.raises(JournalUnavailable, match="is closed: open the file again"):
            asyncio.run(call)
    asyncio.run(SqliteJournal(path).claim("r"))


def test_an_event_costs_about_a_hundred_bytes_besides_its_text(path: Path) -> None:
    journal = SqliteJournal(path)
    event = b'{"text":"' + b"x" * 239 + b'"}'
    for after in range(0, 3000, 3):
        asyncio.run(journal.append(Append("r", after, (event,) * 3)))
    asyncio.run(journal.close())
    assert path.stat().st_size < 3000 * (250 + 110)


@pytest.mark.parametrize("durability", ["bogus", "FULL", "", None, "off; DROP TABLE runs"])
def test_a_durability_that_is_none_is_refused_and_leaves_no_file(tmp_path: Path, durability: Any) -> None:
    with pytest.raises(ValueError, match=r"durability is .*: expected 'full' or 'normal'"):
        SqliteJournal(tmp_path / "deep" / "journal.db", durability)
    assert list(tmp_path.iterdir()) == []


def test_a_journal_with_a_relative_path_stays_where_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        journal = SqliteJournal("journal.db")
        try:
            await journal.append(Append("r", 0, (b"{}",)))
            monkeypatch.chdir(elsewhere)
            await journal.append(Append("r", 1, (b"{}",)))
            journal.subscribe(lambda run, seq: None)
            assert len(await journal.read("r")) == 2
            await journal.claim("r")
        finally:
            await journal.close()

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)
    asyncio.run(scenario())
    assert list(elsewhere.iterdir()) == []


# The formats

FORMAT_1 = """
CREATE TABLE runs (id INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, workflow TEXT NOT NULL, outcome TEXT NOT NULL,
  seq INTEGER NOT NULL, link BLOB NOT NULL) STRICT;
CREATE TABLE events (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL,
  link BLOB NOT NULL, UNIQUE (run, seq)) STRICT;
CREATE TABLE payloads (digest TEXT NOT NULL PRIMARY KEY, body BLOB NOT NULL) STRICT;
PRAGMA application_id = 0x62616B65;
PRAGMA user_version = 1;
"""


def of_format_1(path: Path, runs: dict[str, tuple[str, list[bytes]]]) -> None:
    """A journal as version 0.1 wrote it: runs by name, with their outcome and events."""
    with apsw.Connection(str(path)) as file:
        for _ in file.execute(FORMAT_1):
            pass
        for id, (run, (outcome, events)) in enumerate(runs.items(), 1):
            chain = links(genesis(run), events)
            row = (id, run, "w", outcome, len(events), bytes.fromhex(chain[-1]))
            file.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)", row)
            for seq, (body, link) in enumerate(zip(events, chain, strict=True), 1):
                event = (id, seq, body.decode(), bytes.fromhex(link))
                file.execute("INSERT INTO events (run, seq, body, link) VALUES (?, ?, ?, ?)", event)
    file.close()


def test_a_file_of_format_1_becomes_one_of_format_2_with_its_open_escalations(path: Path) -> None:
    def opened(id: str) -> bytes:
        return b'{"type":"escalation_opened/1","at":1.0,"escalation":"%s","reason":"x","options":[]}' % id.encode()

    def decided(id: str) -> bytes:
        return b'{"type":"escalation_decided/1","at":2.0,"escalation":"%s","choice":"accept"}' % id.encode()

    quoting = b'{"type":"attempt_succeeded/1","at":1.0,"output":{"type":"escalation_opened/1","escalation":"E-9"}}'
    of_format_1(
        path,
        {
            "a": ("waiting", [opened("E-1"), opened("E-2"), decided("E-1"), opened("E-3")]),
            "ended": ("cancelled", [opened("E-1")]),
            "b": ("running", [quoting, opened("E-1"), b"not JSON"]),
        },
    )

    async def scenario() -> None:
        for _ in range(2):
            journal = SqliteJournal(path)
            listed = [f"{each.run} {each.escalation}" for each in await journal.open_escalations()]
            assert listed == ["a E-2", "a E-3", "b E-1"]
            assert [head.run for head in await journal.open_runs()] == ["b", "a"]
            await journal.close()
        journal = SqliteJournal(path)
        claim = await journal.claim("a")
        assert await journal.append(Append("a", 4, (decided("E-2"),), closed=("E-2",), fence=claim.fence, key="k")) == 5
        assert [each.escalation for each in await journal.open_escalations()] == ["E-3", "E-1"]
        await journal.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("version", versions())
def test_recorded_runs_have_the_open_escalations_in_the_index_that_their_states_have(
    tmp_path: Path, version: str
) -> None:
    recorded = [(f"r-{number}", each) for number, each in enumerate(histories(version))]
    waiting = {name: open_escalations(last) for name, each in recorded for *_, (_, last) in (each.states(),)}
    of_format_1(
        tmp_path / "j.db", {name: (each.outcome, [body.encode() for body in each.events]) for name, each in recorded}
    )

    async def scenario() -> None:
        journal = SqliteJournal(tmp_path / "j.db")
        listed = [(each.run, each.escalation) for each in await journal.open_escalations()]
        assert listed == [(name, id) for name, open_ones in waiting.items() for id in open_ones]
        assert len(listed) > 20
        await journal.close()

    asyncio.run(scenario())
