"""A process that executes a run until it is told to stop: `python frozen_process.py JOURNAL LOG`.

It logs every attempt that it begins, says `working` when the first has begun, and how it ended.
"""

from __future__ import annotations

import asyncio
import os
import sys

from backedge import BackedgeError, Briefing, Engine, Step, Workflow


def work(log: str, name: str) -> Workflow:
    """Two steps that log who begins them, and then work for ever."""

    async def begins(briefing: Briefing) -> None:
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{name} {briefing.step} {briefing.attempt}\n".encode())
        os.close(descriptor)
        os.write(1, b"working\n")
        await asyncio.sleep(3600)

    return Workflow("w", [Step(step, begins, on_doubt="rerun") for step in ("a", "b")])


async def main(journal: str, log: str) -> None:
    async with Engine(journal, max_parallel=1) as engine:
        run = await engine.start(work(log, "first"), run="r")
        try:
            await run.result()
        except BackedgeError as error:
            os.write(1, f"{type(error).__name__}\n".encode())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
