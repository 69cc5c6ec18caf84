"""Measures what one run of a judge costs beyond the judge itself, in a workspace with many files.

    python tools/measure_judges.py [--repeats 7] [--files 5000] [--no-packages]

Each line is a median in milliseconds, of wall clock and of CPU: this process, and every process below it. The judge is a
shell script that writes a report; what the same script costs when it is started directly is subtracted. Between two runs
one file of the product changes, as it does in practice. `with packages` adds a Python environment of 4,000 files to the
workspace.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from statistics import median
from typing import Any

from backedge.adapters.agents.command import CommandAgent
from backedge.adapters.agents.supervisor import stop_spawner
from backedge.adapters.evidence.start import Judging
from backedge.adapters.judges.judge_program import JudgeCommand
from backedge.adapters.judges.run_evidence import EvidenceSettings
from backedge.adapters.judges.tool_judge import ToolJudge
from backedge.adapters.judges.workspace_evidence import WorkspaceEvidence
from backedge.adapters.judges.workspace_witness import StepRights, WorkspaceWitness
from backedge.adapters.reports.spec import ReportSpec
from backedge.core.briefing import Briefing

SCRIPT = "echo \"<testsuite><testcase classname='t' name='a' file='tests/test_a.py'/></testsuite>\" > \"$1\""
REVIEW = 'echo "{\\"verdict\\": \\"pass\\"}"'
PACKAGES, BATCH = 4_000, 4
NOBODY: Any = None


def make(folder: Path, files: int, packages: bool) -> Path:
    """A repository with so many files, a tenth of them tests."""
    shop = folder / "shop"
    for number in range(files):
        part, name = ("tests", f"test_{number}") if number % 10 == 0 else ("src", f"module_{number}")
        place = shop / part / f"part_{number % 50}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{name}.py").write_text(f"value = {number}\n" * 20)
    (shop / "tests/test_a.py").write_text("def test_a(): ...\n")
    (shop / ".gitignore").write_text(".venv/\n")
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=shop, check=True, capture_output=True)
    for number in range(PACKAGES if packages else 0):
        place = shop / ".venv/lib/python3/site-packages" / f"package_{number % 80}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"module_{number}.py").write_text("pass\n")
    if packages:
        (shop / ".venv/pyvenv.cfg").write_text("home = /usr\n")
    time.sleep(0.2)  # files this young are hashed every time
    return shop


def evidence_of(shop: Path, room: Any) -> WorkspaceEvidence:
    env = {**os.environ, "XDG_STATE_HOME": str(shop.parent / "home")}
    judging = Judging((("sh", "-c", SCRIPT),))
    return WorkspaceEvidence(
        EvidenceSettings(shop, shop, shop / ".backedge", str(shop / ".backedge/journal.db"), judging, room, env=env)
    )


def cpu() -> float:
    return sum(used.ru_utime + used.ru_stime for used in (getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)))


def measured(repeats: int, prepare: Callable[[int], None], act: Callable[[int], Any]) -> tuple[float, float]:
    """Wall clock and CPU of one call, in milliseconds: medians. The CPU of programs counts when the process that starts them
    has ended, so it is the difference between many calls and few, with one such process each."""
    numbers = itertools.count()

    def batch(count: int) -> tuple[list[float], float]:
        before, walls, idle = cpu(), [], 0.0
        for _ in range(count):
            number, since = next(numbers), cpu()
            prepare(number)
            time.sleep(0.15)
            idle += cpu() - since
            began = time.perf_counter()
            act(number)
            walls.append(1000 * (time.perf_counter() - began))
        stop_spawner()
        return walls, 1000 * (cpu() - before - idle)

    batch(2)  # warms everything up
    walls, cpus = [], []
    for _ in range(repeats):
        (_, few), (other, many) = batch(1), batch(1 + BATCH)
        walls += other[1:]
        cpus.append((many - few) / BATCH)
    return median(walls), median(cpus)


def figures(repeats: int, files: int, packaged: Sequence[bool]) -> Iterator[tuple[str, float, float]]:
    """What each kind of judge costs beyond its program: its name, wall clock and CPU in milliseconds."""
    for packages in packaged:
        with tempfile.TemporaryDirectory() as folder:
            shop = make(Path(folder), files, packages)
            also = ", with packages" if packages else ""
            words = ["sh", "-c", SCRIPT, "x", str(shop.parent / "report")]
            bare = measured(repeats, lambda _: None, partial(_run, words))

            def change(number: int, shop: Path = shop) -> None:
                (shop / "src/part_1/module_1.py").write_text(f"value = {number}\n")

            for room in ("overlay", "copy"):
                evidence = evidence_of(shop, room)
                command = JudgeCommand("test", ("sh", "-c", SCRIPT, "x", "{report}"), ReportSpec("junit"), room=room)
                judge = ToolJudge(evidence, command)

                def look(number: int, judge: ToolJudge = judge, room: str = room) -> None:
                    asyncio.run(judge.work(Briefing(f"r-{room}", "test", "test", number + 1, "work"), NOBODY))

                (shop / "tests/test_a.py").write_text("def test_a(): ...\n")
                wall, used = measured(repeats, change, look)
                yield f"{room}{also}", wall - bare[0], used - bare[1]
                (shop / "tests/test_a.py").write_text("def test_a(): pass\n")
                held = measured(repeats, change, partial(_later, look))
                yield f"{room}, delivered and held{also}", held[0] - 2 * bare[0], held[1] - 2 * bare[1]
            (shop / "tests/test_a.py").write_text("def test_a(): ...\n")
            evidence = evidence_of(shop, "auto")
            witness = WorkspaceWitness(evidence, StepRights("review", judges=True, argv=("sh", "-c", REVIEW)))
            reviewer = CommandAgent(
                ("sh", "-c", REVIEW), folder=shop, state=shop / ".backedge", judges=True, witness=witness
            )

            def review(number: int, reviewer: CommandAgent = reviewer) -> None:
                asyncio.run(reviewer.work(Briefing("r-review", "review", "test", number + 1, "work"), NOBODY))

            wall, used = measured(repeats, change, review)
            yield f"reviewer{also}", wall - bare[0], used - bare[1]


def _run(words: list[str], _: int) -> None:
    subprocess.run(words, check=True)


def _later(look: Callable[[int], None], number: int) -> None:
    look(number + 10_000)


def main() -> None:
    parser = argparse.ArgumentParser(description="what one run of a judge costs beyond the judge itself")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--files", type=int, default=5_000)
    parser.add_argument("--no-packages", action="store_true", help="only without a Python environment in the workspace")
    parser.add_argument("--json", action="store_true", help="one JSON object: [wall, CPU] by name")
    given = parser.parse_args()
    found = figures(given.repeats, given.files, (False,) if given.no_packages else (False, True))
    if given.json:
        print(json.dumps({name: (wall, used) for name, wall, used in found}))
        return
    print(f"{'':<42} wall ms  CPU ms")
    for name, wall, used in found:
        print(f"{name:<42} {wall:7.0f} {used:7.0f}", flush=True)


if __name__ == "__main__":
    main()
