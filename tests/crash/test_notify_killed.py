"""The process that sends is killed at random moments: nothing is lost, and what arrives twice has the same id."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import backedge as be
from backedge.project import Project
from backedge.project.notifying import unsent
from tests.notifications.receiver import SECRET, receiving

RUNS = 12


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_sender_that_is_killed_loses_nothing(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    with receiving() as receiver:
        refused = dice.sample(range(4 * RUNS), 6)

        def answer(_: object) -> int:
            time.sleep(dice.random() * 0.05)
            return 500 if len(receiver.received) in refused else 204

        receiver.answer = answer
        environment = {**os.environ, "HOOK": receiver.url, "HOOK_SECRET": SECRET}
        asyncio.run(ask(tmp_path / "journal.db"))
        command = [sys.executable, "-m", "backedge", "notify", "--journal", str(tmp_path / "journal.db")]
        kills = 0
        for _ in range(12):
            process = subprocess.Popen(
                command, env=environment, cwd=tmp_path, stderr=subprocess.DEVNULL, start_new_session=True
            )
            try:
                process.wait(timeout=dice.uniform(0.5, 2.0))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                kills += 1
        project = Project(tmp_path, tmp_path / "journal.db")
        for _ in range(40):
            subprocess.run([*command, "--once"], env=environment, cwd=tmp_path, capture_output=True, check=False)
            if not unsent(project):
                break
            time.sleep(1)
        assert unsent(project) == []
    opened = {f"run-{number}.2" for number in range(RUNS)}
    ids = [each.id for each in receiver.taken if each.body["event"] == "opened"]
    reminded = [each.id for each in receiver.taken if each.body["event"] == "reminded"]
    assert set(ids) == opened
    assert len(set(reminded)) == RUNS, "one reminder for each question"
    assert all(each.signed for each in receiver.taken)
    # Only what was under way when a process died may arrive once more, with the same id.
    assert len(ids) + len(reminded) <= 2 * RUNS + kills
    for run in range(RUNS):
        order = [each.body["event"] for each in receiver.taken if each.body["run"] == f"run-{run}"]
        assert order == sorted(order), "opened comes before reminded"


async def ask(journal: Path) -> None:
    """Runs that ask a person, and remind of it a moment later."""
    channel = {"to": "${HOOK}", "secret": "HOOK_SECRET", "remind": [0.1]}
    work = be.Workflow("shop", [be.Step("pay", "human", question="?")], notify=[channel])
    async with be.Engine(journal) as engine:
        for number in range(RUNS):
            await (await engine.start(work, run=f"run-{number}")).at_rest()
