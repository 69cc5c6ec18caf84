"""What the tests of commands share: agents written on the spot, briefings, and a look at the processes of the machine."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.adapters.agents.command import CommandAgent
from backedge.adapters.agents.process_tree import marked
from backedge.core.briefing import Briefing
from backedge.core.model import Resolution, Usage
from backedge.engine.protocol import Outcome
from backedge.ports import Result

T = TypeVar("T")

PATIENCE = 30.0


def play(scenario: Coroutine[Any, Any, T], patience: float = PATIENCE) -> T:
    """Run a scenario on an event loop of its own; one that hangs fails."""

    async def bounded() -> T:
        return await asyncio.wait_for(scenario, patience)

    return asyncio.run(bounded())


class Hands:
    """An attempt that nobody listens to."""

    inputs: dict[str, Any] = {}

    def spend(self, usage: Usage) -> None: ...

    async def raise_feedback(self, feedback: object) -> str:
        raise AssertionError("a command has no such door")

    async def wait_for(self, loop: str, timeout: float | None = None) -> Resolution:
        raise AssertionError("a command has no such door")


def told(attempt: int = 1, **more: Any) -> Briefing:
    return Briefing(**{"run": "r-1", "step": "code", "phase": "code", "attempt": attempt, "mode": "work", **more})


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def shell(code: str) -> list[str]:
    return ["sh", "-c", code]


def agent(folder: Path, argv: list[str], **more: Any) -> CommandAgent:
    return CommandAgent(argv, **{"folder": folder, "state": folder / ".backedge", "grace": 0.5, **more})


def files_of(folder: Path, briefing: Briefing | None = None) -> AttemptFolder:
    briefing = briefing or told()
    return AttemptFolder(folder / ".backedge", briefing.run, briefing.step, briefing.attempt)


async def done(folder: Path, argv: list[str], briefing: Briefing | None = None, **more: Any) -> Result:
    result = await agent(folder, argv, **more).work(briefing or told(), Hands())
    assert result is not None
    return result


def result_of(folder: Path, argv: list[str], briefing: Briefing | None = None, **more: Any) -> Result:
    return play(done(folder, argv, briefing, **more))


def outcome_of(folder: Path, argv: list[str], briefing: Briefing | None = None, **more: Any) -> Outcome:
    outcome = result_of(folder, argv, briefing, **more).outcome
    assert isinstance(outcome, Outcome)
    return outcome


def recover(folder: Path, argv: list[str], briefing: Briefing | None = None, **more: Any) -> Result | None:
    return play(agent(folder, argv, **more).recover(briefing or told(), Hands()))


def survivors(folder: Path, briefing: Briefing | None = None) -> list[int]:
    """The processes of an attempt that still run, wherever they moved."""
    return [row.identity.pid for row in marked(files_of(folder, briefing).mark)]


async def until(condition: Callable[[], object], patience: float = 10.0) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(patience):
        while not condition():  # noqa: ASYNC110 - files change without telling
            await asyncio.sleep(0.005)


async def until_there(path: Path) -> None:
    """Wait until an agent has written a file."""
    await until(lambda: path.exists() and path.read_text().endswith("\n"))


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that only waits to be reaped has."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return True


def is_zombie_of_ours(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent, *_ = file.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return state == b"Z" and int(parent) == os.getpid()
