"""A process of its own on a journal, started by the tests: `python engine_process.py WHAT JOURNAL ...`.

Each line it prints was true before it was printed.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

import backedge
from backedge import Attempt, Briefing, Engine, Feedback, Outcome, Step, Workflow


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


async def fails_first(briefing: Briefing) -> str:
    if briefing.attempt == 1:
        raise OSError("first")
    say("goes on", time.monotonic())
    return "made"


FAILS_FIRST = Workflow("waits", [Step("a", fails_first)], limits={"errors_in_a_row": 1})


async def wait_for_decision(journal: str) -> None:
    """Execute a run that waits for a decision, and say when it goes on."""
    async with Engine(journal) as engine:
        run = await engine.start(FAILS_FIRST, run="r")
        await run.result()
        say("waiting")
        await run.changed()
        say(await run.at_rest())


async def decide(journal: str, *escalations: str) -> None:
    """Answer escalations of runs that another process executes, when a line on stdin says so."""
    async with Engine(journal) as engine:
        say("ready")
        for escalation in escalations:
            sys.stdin.readline()
            run = await engine.find("r")
            decided = time.monotonic()
            await run.decide(escalation, "continue", rounds=1, by="another process")
            say("decided", decided, time.monotonic())


async def hold(journal: str) -> None:
    """Execute a run whose attempt does not end."""

    async def sleeps(briefing: Briefing) -> None:
        say("running")
        await asyncio.sleep(600)

    async with Engine(journal) as engine:
        await (await engine.start(Workflow("held", [Step("a", sleeps)]), run="r")).result()


async def code(briefing: Briefing, attempt: Attempt) -> str:
    loop = await attempt.raise_feedback(Feedback("context_request", "plan", "which currency?"))
    say("waits", loop)
    resolution = await attempt.wait_for(loop)
    return f"made with {resolution.answers['plan']}"


async def answers_slowly(briefing: Briefing) -> Outcome | str:
    if briefing.mode != "answer":
        return "plan"
    say("asked")
    if os.environ.get("SLOW"):
        await asyncio.sleep(600)
    return Outcome(answer="EUR")


ASKING = Workflow(
    "asking", [Step("plan", answers_slowly, idempotent=True), Step("code", code, needs="plan", idempotent=True)]
)


def ask(journal: str) -> None:
    report = backedge.run(ASKING, journal=journal, run="r")
    say(report.outcome, report.steps["code"].output)


def interrupted(journal: str) -> None:
    """The synchronous door, in the way of Ctrl-C."""

    async def work(briefing: Briefing) -> str:
        say("running", briefing.attempt)
        if briefing.attempt == 1:
            await asyncio.sleep(600)
        return "made"

    def blocks(briefing: Briefing) -> str:
        if briefing.attempt == 1:
            time.sleep(1)
        return "made"

    try:
        report = backedge.run(Workflow("w", [Step("a", work), Step("b", blocks)]), journal=journal, run="r")
        say(report.outcome)
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(130)


def notebook(journal: str) -> None:
    """The same from inside an event loop that runs already, with Python's own Ctrl-C, as a notebook has it."""

    async def cell() -> None:
        interrupted(journal)

    asyncio.new_event_loop().run_until_complete(cell())


def main(what: str, journal: str, *rest: str) -> None:
    assert Path(journal).parent.is_dir()
    match what:
        case "wait":
            asyncio.run(wait_for_decision(journal))
        case "decide":
            asyncio.run(decide(journal, *rest))
        case "hold":
            asyncio.run(hold(journal))
        case "ask":
            ask(journal)
        case "interrupted":
            interrupted(journal)
        case "notebook":
            notebook(journal)
        case _:
            raise SystemExit(f"unknown: {what}")


if __name__ == "__main__":
    main(*sys.argv[1:])
