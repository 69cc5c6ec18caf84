"""kill -9 of a real process at two hundred random moments under load, each followed by a resume."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from backedge import Engine, SqliteJournal
from backedge.adapters.journals.audit import verify_all
from backedge.core import events as e
from backedge.core.state.evolve import replay
from backedge.engine.codec import decode_events
from tests.crash.worker import Log, workflow

PROGRAM = str(Path(__file__).with_name("worker.py"))
KILLS = 200
LONGEST_LIFE = 0.08


@pytest.mark.xdist_group("crash")
def test_nothing_acknowledged_is_lost_or_doubled_by_two_hundred_kills(tmp_path: Path) -> None:
    seed = int(os.environ.get("BACKEDGE_SEED", "20260115"))
    print(f"BACKEDGE_SEED={seed}")  # pytest shows it when the test fails
    journal, log, complaints = tmp_path / "journal.db", tmp_path / "log", tmp_path / "stderr"
    endings = lives(journal, log, complaints, seed)
    assert complaints.read_text() == ""
    assert endings[-1] == 0, "the last one finished everything"
    assert set(endings[:-1]) == {-signal.SIGKILL}
    asyncio.run(check(journal, log.read_text()))


def lives(journal: Path, log: Path, complaints: Path, seed: int) -> list[int]:
    """Kill a process repeatedly and let the last one live. Returns how each of them ended."""
    chance = random.Random(seed)
    endings = []
    with complaints.open("w") as stderr:
        command = [sys.executable, PROGRAM, str(journal), str(log)]
        nursery = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, start_new_session=True
        )
        assert nursery.stdin
        assert nursery.stdout
        try:
            for life in range(KILLS + 1):
                last = life == KILLS
                nursery.stdin.write(f"{'drain' if last else 'life'} {life}\n")
                nursery.stdin.flush()
                child = int(nursery.stdout.readline())
                if not last:
                    if life % 4:  # three of four are met at work, however slow the machine is; the others anywhere
                        await_growth(log)
                    time.sleep(chance.uniform(0.0, LONGEST_LIFE))
                    os.kill(child, signal.SIGKILL)
                endings.append(int(nursery.stdout.readline()))
        finally:
            os.killpg(nursery.pid, signal.SIGKILL)
            nursery.communicate()
    return endings


def await_growth(log: Path) -> None:
    """Wait until the log has grown."""
    before, give_up = size(log), time.monotonic() + 5
    while size(log) == before and time.monotonic() < give_up:
        time.sleep(0.001)


def size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


async def check(path: Path, log: str) -> None:
    lines = Log.lines(log)
    acknowledged = [(run, int(seq), link) for word, run, seq, link in lines if word == "ack"]
    executed = [(run, step, int(attempt)) for word, run, step, attempt in lines if word == "run"]

    journal = SqliteJournal(path)
    count = await verify_all(journal)  # gapless, and every link fits
    heads = await journal.runs()
    stored: dict[tuple[str, int], str] = {}
    started: Counter[tuple[str, str, int]] = Counter()
    doubts, asked = 0, 0
    for head in heads:
        records = await journal.read(head.run)
        assert [record.seq for record in records] == list(range(1, head.seq + 1))
        stored |= {(head.run, record.seq): record.link for record in records}
        events = decode_events(records)
        state = replay(events)
        assert state is not None
        assert state.ended is not None
        assert state.ended.outcome == head.outcome == "verified"
        assert {name: step.artifact is not None for name, step in state.steps.items()} == dict.fromkeys(
            state.steps, True
        )
        begun = Counter(
            (head.run, event.step, event.attempt) for event in events if isinstance(event, e.AttemptStarted)
        )
        over = Counter(
            (head.run, event.step, event.attempt)
            for event in events
            if isinstance(event, e.AttemptSucceeded | e.AttemptFailed | e.AttemptDropped)
        )
        assert begun == over, "each attempt began once and ended once"
        assert set(begun.values()) == {1}
        started += begun
        lost = [event for event in events if isinstance(event, e.AttemptDropped)]
        assert {event.reason for event in lost} <= {"in doubt"}
        doubts += len(lost)
        # A step that may not run twice was asked about, every time.
        may_not = [event for event in lost if event.step in ("design", "review", "build")]
        packets = [event for event in events if isinstance(event, e.EscalationOpened)]
        assert sorted(str(packet.step) for packet in packets) == sorted(event.step for event in may_not)
        asked += len(packets)
        assert sum(isinstance(event, e.LoopOpened) for event in events) == 2, "asked once, whatever happened"

    # What was acknowledged is stored, and nothing was acknowledged twice.
    assert len(acknowledged) == len({(run, seq) for run, seq, _ in acknowledged})
    lost_events = [(run, seq) for run, seq, link in acknowledged if stored.get((run, seq)) != link]
    assert not lost_events
    # What was stored and not acknowledged is what a kill caught in between: at most what was on its way then.
    assert len(stored) - len(acknowledged) < KILLS * 60
    # No attempt ran twice, and none ran that was not recorded before.
    assert max(Counter(executed).values()) == 1
    assert set(executed) <= set(started)
    assert doubts > KILLS / 2, "the kills met attempts under way"
    await journal.close()

    # And a new process finds nothing left to do.
    async with Engine(path) as engine:
        run = await engine.resume(heads[0].run, workflow(Log(os.devnull), random.Random(0)))
        assert (await run.result()).outcome == "verified"
    print(
        f"{KILLS} kills, {count} runs, {len(stored)} events, {len(acknowledged)} acknowledged, {len(executed)} attempts "
        f"executed, {doubts} in doubt, {asked} of them asked about"
    )
