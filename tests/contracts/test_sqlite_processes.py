"""The SQLite journal among several processes, some of which are killed."""

from __future__ import annotations

import asyncio
import fcntl
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backedge.adapters.journals.audit import verify, verify_all
from backedge.adapters.journals.sqlite import SqliteJournal
from backedge.core.errors import RunHeld
from backedge.ports import Append

PROGRAM = str(Path(__file__).with_name("journal_process.py"))
Process = subprocess.Popen[str]
Start = Callable[..., Process]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts journal processes, and ends those that are left over."""
    started: list[Process] = []

    def begin(*arguments: object) -> Process:
        command = [sys.executable, PROGRAM, *map(str, arguments)]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def line(process: Process) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def nudge(process: Process) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def stored(journal: SqliteJournal, run: str) -> list[str]:
    return [record.body.decode() for record in asyncio.run(journal.read(run))]


def test_an_append_of_another_process_is_noticed_soon(tmp_path: Path, start: Start) -> None:
    journal = SqliteJournal(tmp_path / "journal.db")
    other = start("answer", tmp_path / "journal.db", "r", 1)

    async def scenario() -> float:
        await journal.append(Append("r", 0, (b"{}",)))
        heard: asyncio.Future[tuple[str, int, float]] = asyncio.get_running_loop().create_future()
        journal.subscribe(lambda run, seq: heard.set_result((run, seq, time.monotonic())))
        assert await asyncio.to_thread(line, other) == "ready"
        nudge(other)
        run, seq, noticed = await asyncio.wait_for(heard, 10)
        assert (run, seq) == ("r", 2)
        return noticed - float(await asyncio.to_thread(line, other))

    assert asyncio.run(scenario()) < 0.25
    asyncio.run(journal.close())


def test_a_second_journal_in_the_same_process_counts_as_another(tmp_path: Path) -> None:
    here, there = SqliteJournal(tmp_path / "journal.db"), SqliteJournal(tmp_path / "journal.db")
    heard: list[tuple[str, int]] = []
    yours = asyncio.Event()

    def listener(run: str, seq: int) -> None:
        heard.append((run, seq))
        if run == "yours":
            yours.set()

    async def scenario() -> None:
        unsubscribe = here.subscribe(listener)
        await here.append(Append("mine", 0, (b"{}",)))
        await asyncio.sleep(0.04)
        await there.append(Append("yours", 0, (b"{}", b"{}")))
        await here.append(Append("mine", 1, (b"{}",)))
        await asyncio.wait_for(yours.wait(), 10)
        await asyncio.sleep(0.04)
        unsubscribe()
        await there.append(Append("yours", 2, (b"{}",)))
        await asyncio.sleep(0.04)

    asyncio.run(scenario())
    assert sorted(heard) == [("mine", 1), ("mine", 2), ("yours", 2)], (
        "each once, and nothing after the subscription ended"
    )
    asyncio.run(here.close())
    asyncio.run(there.close())


def test_two_processes_racing_on_one_run_lose_no_event(tmp_path: Path, start: Start) -> None:
    racers = [start("write", tmp_path / "journal.db", "r", name, 100) for name in ("a", "b")]
    acknowledged = [[text.removeprefix("r ") for text in racer.communicate()[0].splitlines()] for racer in racers]
    assert [len(mine) for mine in acknowledged] == [100, 100]
    journal = SqliteJournal(tmp_path / "journal.db")
    events = stored(journal, "r")
    assert sorted(events) == sorted(acknowledged[0] + acknowledged[1])
    for mine in acknowledged:
        assert [event for event in events if event in mine] == mine
    asyncio.run(verify(journal, "r"))
    asyncio.run(journal.close())


def test_four_processes_may_create_and_fill_one_journal_at_once(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "new" / "journal.db"
    writers = [start("write", path, ",".join(f"{name}{number}" for number in range(5)), name, 40) for name in "abcd"]
    assert [len(writer.communicate()[0].splitlines()) for writer in writers] == [200] * 4
    assert [writer.returncode for writer in writers] == [0] * 4
    journal = SqliteJournal(path)
    assert {head.run: head.seq for head in asyncio.run(journal.runs())} == {
        f"{name}{number}": 40 for name in "abcd" for number in range(5)
    }
    assert asyncio.run(verify_all(journal)) == 20
    asyncio.run(journal.close())


def test_whatever_was_acknowledged_survives_a_kill_at_any_moment(tmp_path: Path, start: Start) -> None:
    path = tmp_path / "journal.db"
    chance = random.Random(7)
    acknowledged: dict[str, list[str]] = {"a": [], "b": [], "c": []}
    for kill in range(20):
        writer = start("write", path, "a,b,c", f"life {kill}", 0)
        first = line(writer)
        time.sleep(chance.uniform(0, 0.03))
        writer.kill()
        assert writer.stdout
        for text in [first, *writer.stdout.read().splitlines()]:
            run, _, body = text.partition(" ")
            acknowledged[run].append(body)
    journal = SqliteJournal(path)
    assert asyncio.run(verify_all(journal)) == 3
    for run, bodies in acknowledged.items():
        events = stored(journal, run)
        assert [event for event in events if event in set(bodies)] == bodies
        assert len(events) <= len(bodies) + 20, "at most one event of each life was stored and not yet acknowledged"
    asyncio.run(journal.close())


def test_a_claim_of_another_process_names_it_and_dies_with_it(tmp_path: Path, start: Start) -> None:
    journal = SqliteJournal(tmp_path / "journal.db")
    other = start("claim", tmp_path / "journal.db", "r")
    assert line(other) == "held"
    with pytest.raises(RunHeld) as refusal:
        asyncio.run(journal.claim("r"))
    assert refusal.value.holder == f"process {other.pid}"
    other.kill()
    other.wait()
    asyncio.run(journal.claim("r"))
    asyncio.run(journal.close())


def test_another_process_is_refused_what_this_one_holds(tmp_path: Path, start: Start) -> None:
    journal, twin = SqliteJournal(tmp_path / "journal.db"), SqliteJournal(tmp_path / "journal.db")
    held = [asyncio.run(journal.claim(run)) for run in ("r", "s")]
    with pytest.raises(RunHeld, match="this process"):
        asyncio.run(twin.claim("r"))
    asyncio.run(twin.release(held[0]))
    asyncio.run(twin.close())  # neither the twin's release nor its closing may drop a lock that is not its own
    asyncio.run(journal.release(held[1]))
    assert line(start("claim", tmp_path / "journal.db", "r")).startswith("process ")
    assert line(start("claim", tmp_path / "journal.db", "s")) == "held"
    asyncio.run(journal.close())
    assert line(start("claim", tmp_path / "journal.db", "r")) == "held"


def test_a_claim_is_met_by_whoever_comes_through_a_link(tmp_path: Path, start: Start) -> None:
    journal = SqliteJournal(tmp_path / "journal.db")
    asyncio.run(journal.claim("r"))
    (tmp_path / "link.db").symlink_to(tmp_path / "journal.db")
    assert line(start("claim", tmp_path / "link.db", "r")).startswith("process ")
    asyncio.run(journal.close())


def test_deleting_whatever_stands_beside_the_journal_frees_no_run(tmp_path: Path, start: Start) -> None:
    """As `git clean` does with files that it does not know."""
    journal = SqliteJournal(tmp_path / "journal.db")
    asyncio.run(journal.claim("r"))
    for path in tmp_path.iterdir():
        if path.name not in ("journal.db", "journal.db-wal", "journal.db-shm"):
            path.unlink()
    assert line(start("claim", tmp_path / "journal.db", "r")).startswith("process ")
    asyncio.run(journal.close())


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="the system does not list its locks")
def test_claims_leave_the_locks_of_sqlite_alone(tmp_path: Path) -> None:
    """Closing any descriptor of the file would drop the lock by which others know that it is open."""
    path = tmp_path / "journal.db"
    journal, twin = SqliteJournal(path), SqliteJournal(path)

    def locked() -> bool:
        shared = f":{path.stat().st_ino} {0x40000002} "
        return any(shared in each for each in Path("/proc/locks").read_text().splitlines())

    assert locked()
    asyncio.run(journal.release(asyncio.run(journal.claim("r"))))
    assert asyncio.run(journal.holder("r")) is None
    asyncio.run(twin.claim("s"))
    asyncio.run(twin.close())
    assert locked()
    asyncio.run(journal.close())
    assert not locked()


@pytest.mark.skipif(not hasattr(fcntl, "F_OFD_SETLK"), reason="the system has no locks of open files")
def test_somebody_who_reads_the_journal_file_drops_no_claim(tmp_path: Path, start: Start) -> None:
    journal = SqliteJournal(tmp_path / "journal.db")
    asyncio.run(journal.claim("r"))
    for path in tmp_path.iterdir():
        path.read_bytes()
    assert line(start("claim", tmp_path / "journal.db", "r")) == "another process"
    asyncio.run(journal.close())


def test_one_commit_costs_one_sync(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    strace = ["strace", "-f", "-o", str(trace), "-e", "trace=fsync,fdatasync"]
    if not shutil.which("strace") or subprocess.run([*strace, "true"], capture_output=True).returncode:
        pytest.skip("needs strace and the right to use it, to count what the journal asks of the disk")
    program = [sys.executable, PROGRAM, "write", str(tmp_path / "journal.db"), "r", "a", "50"]
    subprocess.run([*strace, *program], check=True, capture_output=True)
    syncs = trace.read_text().count("sync(")
    assert 50 <= syncs <= 50 + 12, "the few besides make the file, and move the log into it at the end"
