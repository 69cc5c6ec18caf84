"""Measures `backedge stats`: CPU seconds for 10,000 runs and for 1,000,000 events.

    python tools/measure_stats.py [FOLDER]

Prints the minimum and the median of five calls. With FOLDER, the journals are created there once and kept, so that you
can compare two versions on the same journals.
"""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from msgspec.structs import replace

import backedge as be
from backedge.core.events import Event, RunStarted
from backedge.engine.codec import encode_events
from backedge.ports import Append

COMMAND = Path(sys.executable).parent / "backedge"
CALLS = 5
JOURNALS = {
    "10,000 runs": {0: 7_000, 1: 2_000, 3: 1_000},
    "1,000,000 events in few runs": {1_000: 160},
    "1,000,000 events in many runs": {0: 46_000, 3: 12_000},
}
"""The runs of each journal: how many, and with how many rounds of rework."""


async def recorded(rounds: int) -> list[Event]:
    """The events of a run whose review fails this many times."""
    left = rounds

    async def work(_: be.Briefing) -> dict[str, int]:
        return {"left": left}

    async def review(_: be.Briefing) -> be.Outcome:
        nonlocal left
        left -= 1
        if left < 0:
            return be.passed()
        return be.failed(be.Finding(f"problem {left}", severity="high", category="logic", file="a.py"))

    workflow = be.Workflow(
        "measured",
        [
            be.Step("plan", work, phase="planning"),
            be.Step("code", work, phase="code", needs="plan"),
            be.Step("review", review, reviews="code"),
        ],
        limits={"rounds_per_loop": None, "rounds_total": 5_000, "no_change": None},
    )
    journal = be.MemoryJournal()
    async with be.Engine(journal) as engine:
        run = await engine.start(workflow)
        await run.result()
        return await run.events()


async def fill(file: Path, runs: dict[int, int]) -> int:
    """Fill a journal; returns the number of its events."""
    file.parent.mkdir(parents=True)
    journal = be.SqliteJournal(file, durability="normal")
    count = 0
    for rounds, copies in runs.items():
        first, *rest = await recorded(rounds)
        assert isinstance(first, RunStarted)
        bodies, payloads = encode_events(rest)
        for place in range(0, copies, 500):
            names = [f"r-{rounds}-{number}" for number in range(place, min(place + 500, copies))]
            starts = [encode_events([replace(first, run=name)])[0] for name in names]
            entries = [
                Append(name, 0, start + bodies, "measured", "verified", payloads)
                for name, start in zip(names, starts, strict=True)
            ]
            await asyncio.gather(*map(journal.append, entries))
        count += copies * (len(rest) + 1)
    await journal.close()
    return count


def cpu(folder: Path) -> float:
    """CPU seconds of one call."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([COMMAND, "stats", "--json"], cwd=folder, check=True, capture_output=True, timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(folder: Path) -> None:
    for name, runs in JOURNALS.items():
        place = folder / name.replace(" ", "-").replace(",", "")
        file = place / ".backedge" / "journal.db"
        if not file.exists():
            print(f"{name}: {sum(runs.values()):,} runs, {asyncio.run(fill(file, runs)):,} events")
        taken = sorted(cpu(place) for _ in range(CALLS))
        print(f"{name}: {taken[0]:.2f} s CPU at least, {median(taken):.2f} s in the middle")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory(prefix="backedge-measure-") as name:
            main(Path(name))
