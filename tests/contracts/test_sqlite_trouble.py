"""The SQLite journal when the disk is full or slow, the file is locked, or the event loop ends too early."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import apsw
import pytest

from backedge import Engine, Step, Workflow
from backedge.adapters.journals import sqlite_format
from backedge.adapters.journals.audit import verify, verify_all
from backedge.adapters.journals.sqlite import SqliteJournal
from backedge.core.errors import JournalDamaged, JournalUnavailable
from backedge.ports import Append


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@contextmanager
def small_disk(path: Path) -> Iterator[tuple[SqliteJournal, Callable[[], object]]]:
    """A journal on a disk of one megabyte, and what makes the disk larger."""
    folder = str(path.parent)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("mounting a small disk is not permitted here; the page limit stands in for it")
    try:
        journal = SqliteJournal(path)
        yield journal, lambda: subprocess.run(["mount", "-o", "remount,size=20m", folder], check=True)
        asyncio.run(journal.close())
    finally:
        subprocess.run(["umount", folder], check=True)


@contextmanager
def page_limit(path: Path) -> Iterator[tuple[SqliteJournal, Callable[[], object]]]:
    """The same as far as SQLite can tell, for systems without permission to mount."""
    journal = SqliteJournal(path)
    limit = journal._store._connection.execute
    limit("PRAGMA max_page_count = 100")
    yield journal, lambda: limit("PRAGMA max_page_count = 100000")
    asyncio.run(journal.close())


@pytest.mark.parametrize("disk", [small_disk, page_limit])
def test_a_full_disk_stores_nothing_and_the_journal_goes_on_when_there_is_space(
    path: Path, disk: Callable[[Path], AbstractContextManager[tuple[SqliteJournal, Callable[[], object]]]]
) -> None:
    large = (b'"' + b"x" * 400_000 + b'"',) * 3
    entries = [Append("r", 1, large), Append("s", 0, (b"{}",))]

    async def scenario(journal: SqliteJournal, enlarge: Callable[[], object]) -> None:
        await journal.append(Append("r", 0, (b"{}",)))
        for _ in range(2):
            fates = await asyncio.gather(*map(journal.append, entries), return_exceptions=True)
            assert [type(fate) for fate in fates] == [JournalUnavailable] * 2
            assert "disk is full: nothing was stored; free some space" in str(fates[0])
            assert [head.run for head in await journal.runs()] == ["r"]
            assert len(await journal.read("r")) == 1
        enlarge()
        await asyncio.gather(*map(journal.append, entries))
        assert len(await journal.read("r")) == 4
        await verify(journal, "r")

    with disk(path) as (journal, enlarge):
        asyncio.run(scenario(journal, enlarge))


def test_a_lock_that_stays_is_reported_and_harms_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_format, "BUSY_TIMEOUT", 0.05)
    journal = SqliteJournal(path)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(JournalUnavailable, match="another process has locked it"):
        asyncio.run(journal.append(Append("r", 0, (b"{}",))))
    other.execute("ROLLBACK")
    asyncio.run(journal.append(Append("r", 0, (b"{}",))))
    asyncio.run(journal.close())


@contextmanager
def locked_for(path: Path, seconds: float) -> Iterator[None]:
    """Somebody else is writing for a while."""
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")

    def let_go() -> None:
        time.sleep(seconds)
        other.execute("ROLLBACK")
        other.close()

    thread = threading.Thread(target=let_go)
    thread.start()
    yield
    thread.join()


def test_slow_commits_leave_the_event_loop_to_others(path: Path) -> None:
    journal = SqliteJournal(path)
    heard: list[tuple[str, int]] = []

    async def scenario() -> None:
        journal.subscribe(lambda run, seq: heard.append((run, seq)))
        with locked_for(path, 0.15):
            await journal.append(Append("r", 0, (b"{}",)))
        turns = 0
        with locked_for(path, 0.15):
            slow = asyncio.gather(*(journal.append(Append(run, 0, (b"{}",))) for run in "abc"))
            while not slow.done():
                await asyncio.sleep(0.005)
                assert len(await journal.read("r")) == 1
                turns += 1
            await slow
        assert turns > 5
        for after in range(1, 300):
            await journal.append(Append("r", after, (b"{}",)))
        assert dict(heard) == {"r": 300, "a": 1, "b": 1, "c": 1}

    asyncio.run(scenario())
    asyncio.run(verify(journal, "r"))
    asyncio.run(journal.close())


def test_an_event_loop_that_ends_while_a_commit_waits_leaves_a_usable_journal(path: Path) -> None:
    journal = SqliteJournal(path)

    async def begin(run: str) -> None:
        task = asyncio.create_task(journal.append(Append(run, 0, (b"{}",))))
        await asyncio.sleep(0)
        assert not task.done()

    asyncio.run(begin("inline"))
    with locked_for(path, 0.15):
        asyncio.run(journal.append(Append("r", 0, (b"{}",))))
    with locked_for(path, 0.15):
        asyncio.run(begin("in the thread"))
        asyncio.run(journal.append(Append("r", 1, (b"{}",))))
    assert len(asyncio.run(journal.read("r"))) == 2
    asyncio.run(journal.close())


def test_closing_while_slow_commits_wait_fails_them_and_nothing_hangs(path: Path) -> None:
    journal = SqliteJournal(path)

    async def scenario() -> tuple[int | BaseException, ...]:
        with locked_for(path, 0.15):
            await journal.append(Append("r", 0, (b"{}",)))
        with locked_for(path, 0.1):
            under_way = asyncio.create_task(journal.append(Append("r", 1, (b"{}",))))
            await asyncio.sleep(0.02)
            queued = asyncio.create_task(journal.append(Append("r", 2, (b"{}",))))
            await asyncio.sleep(0.02)
            await journal.close()
        late = journal.append(Append("r", 3, (b"{}",)))
        return await asyncio.wait_for(asyncio.gather(under_way, queued, late, return_exceptions=True), 10)

    fates = asyncio.run(scenario())
    assert [type(fate) for fate in fates] == [int, JournalUnavailable, JournalUnavailable]


@pytest.mark.parametrize("write", ["INSERT ON events", "UPDATE ON runs", "INSERT ON payloads"])
def test_events_their_listing_and_their_large_values_are_stored_together_or_not_at_all(path: Path, write: str) -> None:
    """The inbox looks where the listing says that somebody waits: the listing is never behind or ahead of the events."""

    def breaks(briefing: object) -> None:
        raise OSError("no")

    def asked() -> list[str]:
        async def look() -> list[str]:
            async with Engine(path) as engine:
                assert await verify_all(engine.journal) == 1
                return [packet.escalation for packet in await engine.inbox()]

        return asyncio.run(look())

    async def begin() -> None:
        async with Engine(path) as engine:
            work = Workflow("w", [Step("a", breaks)], limits={"errors_in_a_row": 1})
            await (await engine.start(work, run="r")).result()

    async def decide() -> None:
        async with Engine(path) as engine:
            await (await engine.find("r")).decide("E-1", "cancel", note="n" * 9_000)

    asyncio.run(begin())
    assert asked() == ["E-1"]
    other = apsw.Connection(str(path))
    other.execute(f"CREATE TRIGGER broken BEFORE {write} BEGIN SELECT RAISE(ABORT, 'the process dies here'); END")
    with pytest.raises(JournalDamaged, match="the process dies here"):
        asyncio.run(decide())
    other.execute("DROP TRIGGER broken")
    assert asked() == ["E-1"]
    asyncio.run(decide())
    assert asked() == []


CUTS = {"to nothing": 0, "in the middle": 0.5, "by one byte": -1}


def cut(path: Path, to: float) -> None:
    """Cut the write-ahead log short, as a program does that takes it for a leftover."""
    log = path.with_name("journal.db-wal")
    size = log.stat().st_size
    os.truncate(log, size - 1 if to < 0 else int(size * to))


@pytest.mark.parametrize("to", CUTS.values(), ids=list(CUTS))
def test_a_log_that_was_cut_short_stops_the_next_append_and_leaves_a_sound_journal(path: Path, to: float) -> None:
    async def scenario() -> None:
        journal = SqliteJournal(path)
        for number in range(20):
            await journal.append(Append("r", number, (b"{}",), outcome="running"))
        cut(path, to)
        with pytest.raises(JournalDamaged, match=r"journal.db-wal was cut short .* the last events are lost"):
            await journal.append(Append("r", 20, (b"{}",), outcome="running"))
        await journal.close()
        journal = SqliteJournal(path)
        assert await journal.missing() is None
        known = len(await journal.read("r"))
        assert await journal.append(Append("r", known, (b"{}",))) == known + 1 <= 20
        await journal.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("outcome", ["verified", "waiting"])
def test_a_hole_in_the_log_is_found_before_anyone_hears_how_the_run_came_out(path: Path, outcome: str) -> None:
    """The cut happened in the middle of an append, so that the size of the log says nothing."""

    async def scenario() -> None:
        journal = SqliteJournal(path)
        for number in range(20):
            await journal.append(Append("r", number, (b"{}",), outcome="running"))
        cut(path, 0.5)
        journal._store._log.written()
        await journal.append(Append("r", 20, (b"{}",), outcome="running"))
        with pytest.raises(JournalDamaged, match=r"journal.db-wal was cut short"):
            await journal.append(Append("r", 21, (b"{}",), outcome=outcome))
        await journal.close()
        await verify_all(journal := SqliteJournal(path))
        await journal.close()

    asyncio.run(scenario())


def test_a_log_that_was_deleted_stops_the_next_append(path: Path) -> None:
    async def scenario() -> None:
        journal = SqliteJournal(path)
        await journal.append(Append("r", 0, (b"{}",), outcome="running"))
        path.with_name("journal.db-wal").unlink()
        with pytest.raises(JournalDamaged, match=r"journal.db-wal was deleted or replaced"):
            await journal.append(Append("r", 1, (b"{}",), outcome="running"))
        await journal.close()

    asyncio.run(scenario())


def test_another_program_may_copy_the_log_into_the_journal_and_empty_it(path: Path) -> None:
    async def scenario() -> None:
        journal = SqliteJournal(path)
        for number in range(3):
            await journal.append(Append("r", number, (b"{}",), outcome="running"))
            other = apsw.Connection(str(path))
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            assert path.with_name("journal.db-wal").stat().st_size == 0
            other.close()
        assert await journal.append(Append("r", 3, (b"{}",), outcome="verified")) == 4
        await journal.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        ("UPDATE events SET body = '[]' WHERE seq = 30", "event 30 of run 'r' is not the one that was stored"),
        ("DELETE FROM events WHERE seq = 40", "event 40 of run 'r' cannot be read back"),
    ],
)
def test_the_end_of_a_run_is_read_back_before_anyone_hears_how_it_came_out(path: Path, change: str, lost: str) -> None:
    async def scenario() -> None:
        journal = SqliteJournal(path)
        await journal.append(Append("r", 0, (b"{}",) * 40, outcome="running"))
        other = apsw.Connection(str(path))
        other.execute(change)
        with pytest.raises(JournalDamaged, match=lost):
            await journal.append(Append("r", 40, (b"{}",), outcome="verified"))
        other.close()
        await journal.close()

    asyncio.run(scenario())
