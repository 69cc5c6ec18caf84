"""A process with a journal of its own, started by the tests: `python journal_process.py WHAT PATH ...`.

Each line it prints was true before it was printed: an event is acknowledged, a claim is held.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import time

from backedge.adapters.journals.sqlite import SqliteJournal
from backedge.core.errors import JournalConflict, RunHeld
from backedge.ports import Append


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


async def write(journal: SqliteJournal, run: str, name: str, count: int) -> None:
    """Append `count` events to the run, reloading whenever somebody else was quicker; 0 means for ever."""
    seen = len(await journal.read(run))
    for number in range(count) if count else itertools.count():
        body = f'{{"by":"{name}","n":{number}}}'
        while True:
            try:
                await journal.append(Append(run, seen, (body.encode(),)))
                break
            except JournalConflict:
                seen = len(await journal.read(run))
        seen += 1
        say(f"{run} {body}")


async def write_many(journal: SqliteJournal, runs: str, name: str, count: int) -> None:
    await asyncio.gather(*(write(journal, run, name, count) for run in runs.split(",")))


def main(what: str, path: str, *rest: str) -> None:
    journal = SqliteJournal(path)
    if what == "write":
        runs, name, count = rest
        asyncio.run(write_many(journal, runs, name, int(count)))
        asyncio.run(journal.close())
    elif what == "answer":
        say("ready")
        sys.stdin.readline()
        asyncio.run(journal.append(Append(rest[0], int(rest[1]), (b"{}",))))
        say(str(time.monotonic()))
        sys.stdin.readline()
    elif what == "claim":
        try:
            asyncio.run(journal.claim(rest[0]))
            say("held")
        except RunHeld as refusal:
            say(refusal.holder)
        sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
