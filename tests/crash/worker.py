"""A process that works until it is killed: `python worker.py JOURNAL LOG`, told what to do line by line on stdin.

    life SEED    a child goes on with every run that is not finished, and starts new ones for as long as it lives
    drain SEED   a child finishes every run, and ends

It prints the process id of each child, and how it ended. The children are forked, so that they live within
milliseconds. Two kinds of lines go to LOG, each with one write: `ack RUN SEQ LINK` after an append has returned, and
`run RUN STEP ATTEMPT` when an agent is called.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import traceback
from contextlib import suppress
from typing import Any

from backedge import Attempt, Briefing, Engine, Feedback, Outcome, Run, SqliteJournal, Step, Workflow, failed, passed
from backedge.core.errors import AlreadyClosed
from backedge.ports import Append

AT_ONCE = 12


class Log:
    """Lines that survive a kill: each is one write to a file opened for appending.

    A kill can cut a write short at the end of a page of memory. So each line begins on a line of its own and ends with
    a mark: a line that was cut has none, and joins no other.
    """

    MARK = "."

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, *words: object) -> None:
        os.write(self._descriptor, ("\n" + " ".join(map(str, (*words, self.MARK))) + "\n").encode())

    @classmethod
    def lines(cls, text: str) -> list[list[str]]:
        """The words of each line that was written to its end."""
        return [words[:-1] for words in map(str.split, text.splitlines()) if words and words[-1] == cls.MARK]


class AcknowledgedJournal(SqliteJournal):
    """Logs every event once its append has returned."""

    def __init__(self, path: str, log: Log) -> None:
        super().__init__(path)
        self._log = log

    async def append(self, entry: Append) -> int:
        last = await super().append(entry)
        for record in (await self.read(entry.run, entry.after))[: len(entry.bodies)]:
            self._log.write("ack", entry.run, record.seq, record.link)
        return last


def workflow(log: Log, chance: random.Random) -> Workflow:
    """A loop, a cascade, parallel branches, a question in mid-work, an error; half of it may not run twice."""

    async def begin(briefing: Briefing) -> None:
        log.write("run", briefing.run, briefing.step, briefing.attempt)
        await asyncio.sleep(chance.uniform(0.0, 0.004))

    async def plan(briefing: Briefing) -> Any:
        await begin(briefing)
        if briefing.mode == "answer":
            return Outcome(answer="EUR")
        return {"version": (briefing.previous or {"version": 0})["version"] + 1 if briefing.feedback else 1}

    async def design(briefing: Briefing) -> Any:
        await begin(briefing)
        return {"plan": briefing.inputs["plan"]["version"], "step": briefing.step}

    async def review(briefing: Briefing) -> Outcome:
        await begin(briefing)
        return passed() if briefing.inputs["design"]["plan"] >= 2 else failed("no login")

    async def code(briefing: Briefing, attempt: Attempt) -> Any:
        await begin(briefing)
        resolution = await attempt.wait_for(
            await attempt.raise_feedback(Feedback("context_request", "plan", "which currency?"))
        )
        return {"currency": resolution.answers["plan"], "text": "x" * 6_000}

    def build(briefing: Briefing) -> Any:
        log.write("run", briefing.run, briefing.step, briefing.attempt)
        return len(briefing.inputs["code"]["text"])

    return Workflow(
        "load",
        [
            Step("plan", plan, phase="planning", idempotent=True),
            Step("design", design, phase="design", needs="plan"),
            Step("docs", design, phase="design", needs="plan", idempotent=True),
            Step("review", review, reviews="design"),
            Step("code", code, phase="code", needs=["design", "docs"], idempotent=True),
            Step("build", build, phase="test", needs="code"),
        ],
        routes=[{"to": "plan", "keywords": "login"}],
    )


async def finish(run: Run) -> None:
    """Wait for the end of a run, and answer for a person what is asked on the way."""
    while (state := await run.state()).ended is None:
        for id in state.escalations:
            with suppress(AlreadyClosed):
                await run.decide(id, "continue", by="worker")
        if not state.escalations:
            await run.changed()


async def live(path: str, log: Log, seed: int, drain: bool) -> None:
    journal = AcknowledgedJournal(path, log)
    work = workflow(log, random.Random(seed))
    async with Engine(journal) as engine:
        unfinished = [head.run for head in await engine.runs() if head.outcome in ("running", "waiting")]
        working = {asyncio.create_task(finish(await engine.resume(run, work))) for run in unfinished}
        number = 0
        while working or not drain:
            while not drain and len(working) < AT_ONCE:
                number += 1
                run = await engine.start(work, {"seed": seed}, run=f"r{seed}-{number}")
                working.add(asyncio.create_task(finish(run)))
            done, working = await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    await journal.close()


def main(path: str, log: str) -> None:
    for line in sys.stdin:
        word, seed = line.split()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                asyncio.run(live(path, Log(log), int(seed), word == "drain"))
                code = 0
            except BaseException:  # noqa: BLE001 - the child must end here, whatever happens
                traceback.print_exc()
            os._exit(code)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
