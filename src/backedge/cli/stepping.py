"""`--step`: stops after one attempt; on a terminal, asks before each one."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable
from typing import Literal

from backedge.app import Engine, Run
from backedge.cli.common import say, shown
from backedge.cli.keyboard import typed_line
from backedge.core.scheduling.pending import CheckInputs, RunOutcome, pending
from backedge.core.scheduling.scheduler import Start
from backedge.core.state.run import RunState
from backedge.engine.live_run import resting
from backedge.stories.advance import changed, finished

Answer = Literal["go", "stop", "all"]
Ask = Callable[[str], Awaitable[Answer]]

QUESTION = "next: {next}? [Enter: run it, s: stop here, a: run all the rest] "


async def stepped(engine: Engine, run: Run, ask: Ask) -> RunOutcome | None:
    """Execute one attempt after the other, for as long as `ask` says so. Returns the outcome if the run has ended or
    waits for a person, "running" if `ask` stopped it, and None if `ask` wants all the rest without questions.

    The engine must allow no attempts when this is called, so that nothing starts before the first question."""
    await finished(engine, run, 0)
    while True:
        state = await run.state()
        outcome = resting(state)
        if outcome is not None:
            return outcome
        ready = next((each for each in pending(state, time.time()) if isinstance(each, Start | CheckInputs)), None)
        if ready is None:
            await changed(run, state)
            continue
        answer = await ask(_words(state, ready))
        if answer == "all":
            engine.allow(None)
            return None
        if answer == "stop":
            return "running"
        engine.allow(1)
        await finished(engine, run, state.attempts + 1)


def _words(state: RunState, ready: Start | CheckInputs) -> str:
    attempt = f"attempt {state.steps[ready.step].attempts + 1}"
    why = f", {ready.mode} {', '.join(ready.loops)}" if isinstance(ready, Start) and ready.loops else ""
    return f"{shown(ready.step, 40)} ({attempt}{why})"


def once(under_way: bool) -> Ask:
    """Allow one attempt. If a crash left one running, that is the one."""
    left = 0 if under_way else 1

    async def ask(next: str) -> Answer:  # noqa: ARG001
        nonlocal left
        left -= 1
        return "go" if left >= 0 else "stop"

    return ask


async def at_terminal(next: str) -> Answer:
    """Ask at the terminal."""
    while True:
        print(QUESTION.format(next=next), end="", file=sys.stderr, flush=True)
        line = await typed_line()
        if not line:
            say()  # the input has ended: there is nobody left to ask
            return "stop"
        word = line.strip().lower()
        if word in ("", "y", "yes"):
            return "go"
        if word in ("s", "stop", "n", "no", "q"):
            return "stop"
        if word in ("a", "all"):
            return "all"
