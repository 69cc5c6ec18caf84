"""Measures how long commands take: `--help`, and `runs` on a journal of 10,000 runs.

    python tools/measure_cli.py

Prints the fastest, the median and the slowest of ten starts, and exits with 1 if a median is above its bound.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from backedge.adapters.journals.sqlite import SqliteJournal
from backedge.core.events import RunStarted
from backedge.core.workflow.build import build_workflow
from backedge.core.workflow.definition import Step
from backedge.engine.codec import encode_events
from backedge.ports import Append

COMMAND = Path(sys.executable).parent / "backedge"
RUNS = 10_000
STARTS = 10
BOUNDS = {("--help",): 0.25, ("runs",): 0.5, ("runs", "--json"): 0.5}
"""Seconds, by command."""


async def fill(journal_file: Path, count: int) -> None:
    """A journal with this many runs: all have started, and every second one has ended."""
    journal_file.parent.mkdir(parents=True)
    journal = SqliteJournal(journal_file, durability="normal")
    workflow = build_workflow("w", [(Step("a", phase="code", agents=("a",)), {})])
    entries = [
        Append(name, 0, encode_events([RunStarted(float(n), name, workflow)])[0], "w", "done" if n % 2 else "waiting")
        for n, name in enumerate(f"r-{n:05}" for n in range(count))
    ]
    for place in range(0, count, 500):
        await asyncio.gather(*map(journal.append, entries[place : place + 500]))
    await journal.close()


def starts(folder: Path, *words: str) -> list[float]:
    """The seconds of each start. The first one is not counted, because it may compile files."""
    taken = []
    for _ in range(STARTS + 1):
        began = time.perf_counter()
        subprocess.run([COMMAND, *words], cwd=folder, check=True, capture_output=True, timeout=60)
        taken.append(time.perf_counter() - began)
    return sorted(taken[1:])


def main() -> int:
    slow = False
    with tempfile.TemporaryDirectory(prefix="backedge-measure-") as name:
        folder = Path(name)
        asyncio.run(fill(folder / ".backedge" / "journal.db", RUNS))
        for words, bound in BOUNDS.items():
            taken = starts(folder, *words)
            late = median(taken) > bound
            slow = slow or late
            print(
                f"backedge {' '.join(words):12} {taken[0]:.3f} – {median(taken):.3f} – {taken[-1]:.3f} s, "
                f"bound {bound} s{': TOO SLOW' if late else ''}"
            )
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
