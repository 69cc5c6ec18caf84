"""Measures the CPU seconds of commands that read many runs: `inbox`, `decide` without --run, and `prune`.

    python tools/measure_journal.py

Prints the fastest of three starts next to its goal. The runs are copies of two real ones: one that waits for a decision
after three rounds, and one that has ended.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import backedge as be
from backedge.adapters.journals.sqlite import SqliteJournal
from backedge.ports import Append

COMMAND = Path(sys.executable).parent / "backedge"
GOALS = [
    ("inbox --json", 1_000, 0, 0.4),
    ("decide E-1 continue", 10_000, 0, 0.4),
    ("prune --keep 0s", 0, 22_000, 3.0),
]
"""A command, how many runs wait, how many have ended, and the most seconds that it should take."""


async def sample(fails: int) -> tuple[str, tuple[bytes, ...]]:
    """The outcome and the events of a run whose review fails this many times."""

    def review(briefing: be.Briefing) -> be.Outcome:
        if briefing.attempt > fails:
            return be.passed()
        return be.failed(be.Finding(f"no authentication in {briefing.attempt}", severity="high"))

    steps = [
        be.Step("plan", lambda briefing: {"units": ["a", "b"], "n": briefing.attempt}, phase="planning"),
        be.Step("code", lambda briefing: {"text": "x" * 300, "n": briefing.attempt}, phase="code", needs=["plan"]),
        be.Step("review", review, reviews="code"),
    ]
    async with be.Engine() as engine:
        run = await engine.start(be.Workflow("w", steps, limits={"rounds_per_loop": 3}), run="sample")
        report = await run.result()
        return report.outcome, tuple(record.body for record in await engine.journal.read("sample"))


async def fill(path: Path, waiting: int, ended: int) -> None:
    """A journal with this many runs of each kind."""
    path.parent.mkdir(parents=True)
    journal = SqliteJournal(path, durability="normal")
    entries = []
    for kind, count, opened in ((await sample(99), waiting, ("E-1",)), (await sample(1), ended, ())):
        outcome, (first, *rest) = kind
        for number in range(count):
            name = f"r-{number:05}"
            started = first.replace(b'"sample"', b'"%s"' % name.encode(), 1)
            entries.append(Append(name, 0, (started, *rest), "w", outcome, opened=opened))
    for place in range(0, len(entries), 500):
        await asyncio.gather(*map(journal.append, entries[place : place + 500]))
    await journal.close()


def cpu(folder: Path, *words: str) -> float:
    """The CPU seconds of a command, which do not depend on the load of the machine."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([COMMAND, *words], cwd=folder, capture_output=True, timeout=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    for words, waiting, ended, goal in GOALS:
        with tempfile.TemporaryDirectory(prefix="backedge-measure-") as name:
            folder = Path(name)
            asyncio.run(fill(folder / ".backedge" / "journal.db", waiting, ended))
            taken = min(cpu(folder, *words.split()) for _ in range(3))
            print(f"backedge {words:20} {waiting + ended:6} runs  {taken:.2f} s, goal {goal} s")


if __name__ == "__main__":
    main()
