"""Bad disks, folders and files: each is a clear error, and nothing that was recorded is lost."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

import backedge
from backedge import Briefing, Engine, Report, SqliteJournal, Step, Workflow
from backedge.adapters.journals.audit import verify
from backedge.core import events as e
from backedge.core.errors import JournalDamaged, JournalTooNew, JournalUnavailable
from backedge.errors import JournalError
from backedge.ports import Append
from tests.engine.parts import flow, named, only, play


def mounted(folder: Path, options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True).returncode == 0


# A folder that cannot be written


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "folder"
    folder.mkdir()
    if os.getuid():
        folder.chmod(0o555)
        yield folder
        folder.chmod(0o755)
        return
    if not mounted(folder, "ro"):
        pytest.skip("root can write everywhere, and may not mount here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_read_only_folder_is_named_when_the_journal_is_opened(read_only: Path) -> None:
    for path in (read_only / "j.db", read_only / "below" / "j.db"):
        with pytest.raises(JournalUnavailable, match=r"read-only|cannot make the folder|cannot be opened") as refusal:
            Engine(path)
        assert str(path.parent) in str(refusal.value)
        with pytest.raises(JournalUnavailable):
            backedge.run(flow(Step("a", named)), journal=path)


def test_a_path_through_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(JournalUnavailable, match="cannot make the folder"):
        Engine(tmp_path / "file" / "j.db")
    with pytest.raises(JournalUnavailable):
        Engine(tmp_path)
    for name in ("j\0.db", "folder\0/j.db"):
        with pytest.raises(JournalUnavailable, match="is not a path: it has a NUL character in it"):
            Engine(tmp_path / name)


# A full disk

Disk = Callable[[Path], AbstractContextManager[Callable[[Engine], object]]]


@contextmanager
def small_disk(folder: Path) -> Iterator[Callable[[Engine], object]]:
    """A disk of one megabyte, and what makes it larger."""
    if not mounted(folder, "size=1m"):
        pytest.skip("mounting a small disk is not permitted here; the page limit stands in for it")
    try:
        yield lambda engine: subprocess.run(["mount", "-o", "remount,size=40m", str(folder)], check=True)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def connection_of(engine: Engine) -> apsw.Connection:
    assert isinstance(engine.journal, SqliteJournal)
    return engine.journal._store._connection


@contextmanager
def page_limit(folder: Path) -> Iterator[Callable[[Engine], object]]:
    """The same as far as SQLite can tell, for systems without permission to mount."""
    yield lambda engine: connection_of(engine).execute("PRAGMA max_page_count = 100000")


def filling(**step: Any) -> Workflow:
    def large(briefing: Briefing) -> str:
        return f"{briefing.step} " * 60_000

    return flow(*(Step(f"s{n}", large, needs=[f"s{n - 1}"] if n else [], **step) for n in range(6)))


@pytest.mark.parametrize("disk", [small_disk, page_limit])
@pytest.mark.parametrize("where", ["same engine", "new engine"])
def test_a_full_disk_stops_the_run_with_a_clear_error_and_it_finishes_when_there_is_space(
    tmp_path: Path, disk: Disk, where: str
) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    work = filling(idempotent=True)

    async def scenario(enlarge: Callable[[Engine], object]) -> Report:
        path = folder / "j.db"
        async with Engine(path) as engine:
            if disk is page_limit:
                connection_of(engine).execute("PRAGMA max_page_count = 200")
            run = await engine.start(work, run="r")
            with pytest.raises(JournalUnavailable, match="the disk is full: nothing was stored; free some"):
                await run.result()
            with pytest.raises(JournalUnavailable):
                await run.pause()
            done = [name for name, step in (await run.report()).steps.items() if step.state == "done"]
            assert 0 < len(done) < 6
            await verify(engine.journal, "r")
            if where == "same engine":
                enlarge(engine)
                run = await engine.resume("r", work)
                report = await run.result()
                await verify(engine.journal, "r")
                return report
        async with Engine(path) as engine:
            enlarge(engine)
            run = await engine.resume("r", work)
            report = await run.result()
            assert all(report.steps[name].attempts == 1 for name in done), "what was recorded stays done"
            await verify(engine.journal, "r")
            return report

    with disk(folder) as enlarge:
        report = play(scenario(enlarge))
    assert report.outcome == "done"
    assert all(step.output == f"{name} " * 60_000 for name, step in report.steps.items())


def test_a_full_disk_leaves_what_could_not_be_recorded_in_doubt(tmp_path: Path) -> None:
    work = filling()

    async def scenario() -> Report:
        async with Engine(tmp_path / "j.db") as engine:
            limit = connection_of(engine).execute
            limit("PRAGMA max_page_count = 200")
            run = await engine.start(work, run="r")
            with pytest.raises(JournalUnavailable):
                await run.result()
            limit("PRAGMA max_page_count = 100000")
            run = await engine.resume("r", work)
            report = await run.result()
            assert report.outcome == "waiting"
            assert "is in doubt" in report.escalations[0].reason
            await run.decide("E-1", "continue")
            return await run.result()

    assert play(scenario()).outcome == "done"


def test_a_disk_that_is_full_from_the_start_starts_nothing(tmp_path: Path) -> None:
    begun: list[int] = []

    async def scenario() -> None:
        async with Engine(tmp_path / "j.db") as engine:
            limit = connection_of(engine).execute
            limit("PRAGMA max_page_count = 9")
            work = flow(Step("a", lambda b: begun.append(1)))
            with pytest.raises(JournalUnavailable, match="disk is full"):
                await engine.start(work, "x" * 500_000, run="r")
            assert not await engine.runs()
            assert not begun
            limit("PRAGMA max_page_count = 100000")
            run = await engine.start(work, "x" * 500_000, run="r")
            assert (await run.result()).outcome == "done", "and the name is free again"

    play(scenario())


def test_a_disk_without_space_for_a_journal_is_named(tmp_path: Path) -> None:
    with small_disk(tmp_path):
        (tmp_path / "rest").write_bytes(b"x" * 1_040_000)
        with pytest.raises(JournalUnavailable, match="the disk is full: nothing was stored; free some space"):
            Engine(tmp_path / "j.db")
        (tmp_path / "rest").unlink()
        assert backedge.run(flow(Step("a", named)), journal=tmp_path / "j.db").outcome == "done"


# A journal of a newer version


def stored(path: Path, **steps: Any) -> None:
    """A journal with a run "r" that has ended."""
    backedge.run(flow(Step("a", named), Step("b", named, needs="a")), journal=path, run="r")


def test_a_file_of_a_newer_format_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    stored(path)
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    before = path.read_bytes()
    with pytest.raises(
        JournalTooNew, match="has journal format 99, this backedge knows formats up to 2: install a newer"
    ):
        backedge.run(flow(Step("a", named)), journal=path, run="r")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b'{"type":"attempt_started/9","at":1.0,"step":"a"}', "attempt_started/9"),
        (b'{"type":"moon_phase/1","at":1.0}', "moon_phase/1"),
        (b'{"type":"run_paused/1","at":1.0,"because":"tired"}', "because"),
    ],
)
def test_an_event_of_a_newer_version_is_named_and_the_run_is_not_changed(
    tmp_path: Path, body: bytes, what: str
) -> None:
    path = tmp_path / "j.db"
    stored(path)

    async def scenario() -> None:
        async with Engine(path) as engine:
            count = len(await engine.journal.read("r"))
            await engine.journal.append(Append("r", count, (body,)))
            for attempt in (engine.find("r"), engine.resume("r", flow(Step("a", named), Step("b", named)))):
                with pytest.raises(JournalTooNew) as refusal:
                    await attempt
                assert what in str(refusal.value)
                assert f"event {count + 1} is unknown to this version" in str(refusal.value)
                assert "upgrade this one" in str(refusal.value)
            assert len(await engine.journal.read("r")) == count + 1
            fresh = await engine.start(flow(Step("a", named)))
            assert (await fresh.result()).outcome == "done", "other runs go on"

    play(scenario())


def test_events_of_a_newer_version_in_a_run_executed_here_are_an_error(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with Engine(tmp_path / "j.db") as engine:
            run = await engine.start(flow(Step("a", lambda b: asyncio.sleep(600))), run="r")
            waiter = asyncio.create_task(run.result())
            await asyncio.sleep(0.02)
            other = SqliteJournal(tmp_path / "j.db")
            await other.append(Append("r", len(await other.read("r")), (b'{"type":"moon_phase/1","at":1.0}',)))
            await other.close()
            with pytest.raises(JournalTooNew, match="moon_phase/1"):
                await asyncio.wait_for(waiter, 5)
            with pytest.raises(JournalTooNew):
                await run.cancel()

    play(scenario())


# A damaged file


@pytest.mark.parametrize("notes", ["my notes\n" * 1000, "my notes", "x"], ids=["long", "short", "one character"])
def test_a_text_file_is_refused_and_not_changed(tmp_path: Path, notes: str) -> None:
    text = tmp_path / "notes.txt"
    text.write_text(notes)
    with pytest.raises(JournalDamaged, match="is not a valid journal"):
        backedge.run(flow(Step("a", named)), journal=text)
    assert text.read_text() == notes


def test_a_foreign_database_is_refused_and_not_changed(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    database = sqlite3.connect(other)
    database.execute("CREATE TABLE mine (x)")
    database.commit()
    database.close()
    with pytest.raises(JournalDamaged, match="is a database of something else"):
        backedge.run(flow(Step("a", named)), journal=other)


def test_a_file_with_corrupt_pages_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    for number in range(30):
        backedge.run(flow(Step("a", named)), "input " * 300, journal=path, run=f"r{number}")
    whole = path.read_bytes()
    chance = random.Random(4)
    for start in range(4096, len(whole), 4096):
        path.write_bytes(whole[:start] + chance.randbytes(4096) + whole[start + 4096 :])
        for left_over in ("-wal", "-shm"):
            (tmp_path / f"j.db{left_over}").unlink(missing_ok=True)

        async def scenario() -> None:
            with suppress(JournalError):
                async with Engine(path) as engine:
                    for head in await engine.runs():
                        with suppress(JournalError):
                            await verify(engine.journal, head.run)
                            run = await engine.find(head.run)
                            assert (await run.report()).outcome == "done", "what is whole can still be read"

        play(scenario())
    path.write_bytes(whole)
    assert backedge.run(flow(Step("a", named)), journal=path, run="r0").outcome == "done"


def test_an_event_that_is_not_json_is_reported_as_damage(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    stored(path)
    database = sqlite3.connect(path)
    database.execute("UPDATE events SET body = 'nonsense' WHERE seq = 3")
    database.commit()
    database.close()

    async def scenario() -> None:
        async with Engine(path) as engine:
            with pytest.raises(
                JournalDamaged, match=r"event 3 of run 'r' is damaged: it does not fit the chain; restore a backup"
            ):
                await engine.find("r")
            with pytest.raises(JournalDamaged, match="event 3 of run 'r' was changed"):
                await verify(engine.journal, "r")

    play(scenario())


def test_a_missing_payload_is_an_error_and_the_rest_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "j.db"
    work = flow(Step("a", lambda b: "x" * 50_000), Step("b", lambda b: len(b.inputs["a"]), needs="a"))
    backedge.run(work, journal=path, run="r")
    database = sqlite3.connect(path)
    database.execute("DELETE FROM payloads")
    database.commit()
    database.close()

    async def scenario() -> list[e.Event]:
        async with Engine(path) as engine:
            run = await engine.find("r")
            with pytest.raises(JournalDamaged, match="was never stored; restore a backup"):
                await run.report()
            return await run.events()

    assert len(only(e.AttemptSucceeded, play(scenario()))) == 2


def test_a_journal_that_is_deleted_under_a_running_engine_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "j.db"

    async def slow(briefing: Briefing) -> str:
        await asyncio.sleep(0.05)
        return "made"

    async def scenario() -> None:
        async with Engine(path) as engine:
            run = await engine.start(flow(Step("a", slow), Step("b", slow, needs="a")), run="r")
            for part in ("j.db", "j.db-wal", "j.db-shm"):
                os.unlink(tmp_path / part)
            with pytest.raises(JournalUnavailable, match=r"deleted|moved|gone"):
                await run.result()

    play(scenario())
